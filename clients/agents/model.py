"""A model that follows a script, on loopback: Anthropic messages, OpenAI responses and chat, Gemini generateContent.

    model.py SCRIPT.json      prints its port, then one line of JSON for each tool result that it was given

The script is a list of [tool, arguments]. A request with as many tool results as steps done gets the next step; after the
last, a text. A step ["left_out", {}] makes the call that the last result names for what it left out. A step ["until", TEXT] ends the turn, until somebody has said TEXT to the agent. {"always": [tool, arguments]}
is a step for the first prompt and for every prompt that tells of events. The names of tools are found among those that the
agent offers, whatever the agent puts in front of them.
"""

import http.server
import json
import re
import sys
import threading

SCRIPT = json.load(open(sys.argv[1]))
LOCK = threading.Lock()
SHOWN = set()


# How Claude Code lets a model wait for servers that are still starting.
WAIT = "WaitForMcpServers"


def text_of(content):
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part) for part in content)
    if isinstance(content, dict):
        for key in ("text", "output", "content", "response"):
            if key in content:
                return text_of(content[key])
        return json.dumps(content)
    return str(content)


def script_for(body):
    if isinstance(SCRIPT, list):
        return SCRIPT
    return [SCRIPT["always"]] * (1 + json.dumps(body).count("[outlast events "))


def left_out(text):
    """The call that reads what an answer left out, as the answer names it."""
    tool, arguments = re.search(r"bytes left out \(…\): (\w+)\(([^)]*)\)", text).groups()
    return tool, json.loads("{" + re.sub(r"(\w+)=", r'"\1": ', arguments) + "}")


def step(results, names, body, said=()):
    """The next step, with the agent's own name for the tool; none when the script is done, or waits for a word."""
    for index, result in enumerate(results):
        with LOCK:
            if index not in SHOWN:
                SHOWN.add(index)
                print(json.dumps({"result": index, "text": text_of(result)}), flush=True)
    done = 0
    for tool, arguments in script_for(body):
        if tool == "until":
            heard = [text for text in said if arguments in text]
            if not heard:
                return None
            with LOCK:
                if arguments not in SHOWN:
                    SHOWN.add(arguments)
                    print(json.dumps({"said": heard[0]}), flush=True)
        elif done < len(results):
            done += 1
        else:
            if tool == "left_out":
                tool, arguments = left_out(text_of(results[-1]))
            found = [name for name in names if re.fullmatch(rf"(.*outlast_{{1,2}})?{tool}", name) and "outlast" in name]
            if found:
                return found[0], arguments
            # Never the agent's own tool of that name: the server is not connected yet, or lost.
            return (WAIT, {}) if WAIT in names else (f"mcp__outlast__{tool}", arguments)
    return None


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, kind="application/json"):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def events(self, events, named=True):
        lines = []
        for event in events:
            if named:
                lines.append(f"event: {event['type']}\n")
            lines.append(f"data: {json.dumps(event)}\n\n")
        self.answer("".join(lines).encode(), "text/event-stream")

    def do_GET(self):
        self.answer({"data": [], "models": []})

    def do_HEAD(self):
        self.answer(b"")

    def do_POST(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size) or b"{}")
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens") or path.endswith(":countTokens"):
            self.answer({"input_tokens": 1, "totalTokens": 1})
        elif path.endswith("/messages"):
            self.anthropic(body)
        elif path.endswith("/responses"):
            self.speak_responses(body)
        elif path.endswith("/chat/completions"):
            self.chat(body)
        elif "enerateContent" in path:
            self.gemini(body, "stream" in path)
        else:
            self.answer({})

    def anthropic(self, body):
        names = [tool["name"] for tool in body.get("tools", [])]
        parts = [part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]]
        waits = {part["id"] for part in parts if part["type"] == "tool_use" and part["name"] == WAIT}
        results = [part.get("content", "") for part in parts
                   if part["type"] == "tool_result" and part["tool_use_id"] not in waits]
        user = [message["content"] for message in body["messages"] if message["role"] == "user"]
        said = [text_of(content) if isinstance(content, str) else part.get("text", "")
                for content in user for part in (content if isinstance(content, list) else [content])]
        next_step = step(results, names, body, said) if names else None
        usage = {"input_tokens": 1, "output_tokens": 1}
        if next_step:
            block = {"type": "tool_use", "id": f"toolu_{len(results)}_{len(waits)}", "name": next_step[0], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(next_step[1])}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "DONE"}
        stop = "tool_use" if next_step else "end_turn"
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "usage": usage}
        if not body.get("stream"):
            block = {**block, "input": next_step[1]} if next_step else {"type": "text", "text": "DONE"}
            self.answer({**message, "content": [block], "stop_reason": stop, "stop_sequence": None})
            return
        self.events([
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ])

    def speak_responses(self, body):
        names, spaces = [], {}
        for tool in body.get("tools", []):
            if tool.get("type") == "namespace":
                for inner in tool.get("tools", []):
                    names.append(inner["name"] if "outlast" in inner["name"] else f"outlast__{inner['name']}")
                    spaces[names[-1]] = (tool["name"], inner["name"])
            elif "name" in tool:
                names.append(tool["name"])
        names = [name for name in names if "outlast" in name]
        results = [item["output"] for item in body["input"] if item.get("type") == "function_call_output"]
        said = [text_of(item.get("content", "")) for item in body["input"] if item.get("role") == "user"]
        # A terminal asks before its servers have started; such a turn gets no step.
        next_step = step(results, names, body, said) if names else None
        if next_step:
            item = {"type": "function_call", "id": f"fc_{len(results)}", "call_id": f"call_{len(results)}",
                    "name": next_step[0], "arguments": json.dumps(next_step[1])}
            if next_step[0] in spaces:
                item["namespace"], item["name"] = spaces[next_step[0]]
        else:
            item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "DONE"}]}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": None, "output_tokens_details": None}
        self.events([
            {"type": "response.created", "response": {"id": "resp_1"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "resp_1", "usage": usage, "output": []}},
        ])

    def chat(self, body):
        names = [tool["function"]["name"] for tool in body.get("tools", [])]
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        said = [text_of(message["content"]) for message in body["messages"] if message["role"] == "user"]
        next_step = step(results, names, body, said) if names else None
        if next_step:
            call = {"index": 0, "id": f"call_{len(results)}", "type": "function",
                    "function": {"name": next_step[0], "arguments": json.dumps(next_step[1])}}
            delta, stop = {"role": "assistant", "tool_calls": [call]}, "tool_calls"
        else:
            delta, stop = {"role": "assistant", "content": "DONE"}, "stop"
        base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": body.get("model", "m")}
        chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
                  {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}],
                   "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}]
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.answer(text.encode(), "text/event-stream")

    def gemini(self, body, stream):
        names = [d["name"] for tool in body.get("tools", []) for d in tool.get("functionDeclarations", [])]
        parts = [part for content in body["contents"] for part in content.get("parts", [])]
        results = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        said = [part["text"] for content in body["contents"] if content.get("role") == "user" for part in content["parts"] if "text" in part]
        next_step = step(results, names, body, said) if names else None
        if next_step:
            part = {"functionCall": {"name": next_step[0], "args": next_step[1]}}
        else:
            part = {"text": "DONE"}
        answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                  "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
        if stream:
            self.events([answer], named=False)
        else:
            self.answer(answer)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_address[1], flush=True)
server.serve_forever()
