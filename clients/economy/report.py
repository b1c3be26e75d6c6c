"""The figures as a page with a table, and as bars."""

import os

OURS = "Outlast"
COLOURS = ["#1f6feb", "#8b949e", "#a371f7", "#3fb950", "#d29922", "#f778ba", "#39c5cf"]


def cost(result):
    return result["asked"] + result["read"]


def ranked(results, name):
    """Plays that showed everything and did not sleep by guess."""
    return {server: result[name] for server, result in results.items()
            if "failed" not in result[name] and not result[name]["slept"]}


def verdict(results):
    """0 if ours has the fewest or equal calls in all workflows and the fewest tokens in at least six."""
    if OURS not in results:
        return 0
    calls = tokens = 0
    for name in results[OURS]:
        if "failed" in results[OURS][name]:
            print(f"{name}: ours failed")
            return 1
        fair = ranked(results, name)
        ours = fair[OURS]
        calls += all(ours["calls"] <= other["calls"] for other in fair.values())
        fewest = all(cost(ours) <= cost(other) for other in fair.values())
        tokens += fewest
        if not fewest:
            best = min(fair, key=lambda server: cost(fair[server]))
            print(f"{name}: {best} needs {cost(fair[best])} tokens, ours {cost(ours)}")
    count = len(results[OURS])
    print(f"fewest or equal calls in {calls} of {count}, fewest tokens in {tokens} of {count}")
    return 0 if calls == count and tokens >= count - 1 else 1


def cell(result, best):
    if "failed" in result:
        return "fails"
    text = f"{result['calls']} / {cost(result)}"
    if result["slept"]:
        return f"({text})"
    return f"**{text}**" if cost(result) == best else text


def write(docs, results, lists, seconds):
    servers = list(results)
    names = list(results[OURS])
    lines = ["# What it costs a model", "",
             "Seven workflows, each played on Outlast and on other terminal servers by the same script in one run, with default",
             "parameters: `clients/economy/run PROGRAM --write` writes this page. A cell is *calls / tokens*: the tokens (o200k_base) of",
             "the calls that a model has to write and of the answers that it reads. A play counts only if every question, exit code",
             "and error line was in an answer, and the world is as it should be afterwards; one that fails is tried three times. In",
             "brackets are plays that have to sleep by guess, because their server can't wait: they are listed and not ranked. Bold is the",
             "fewest. What a conversation needs once is done before anything is counted: terminalcp's background process, `Initialize` of wcgw,",
             "`create_session` of libtmux-mcp.", "",
             "![Tokens for each workflow](economy.svg)", "",
             "| workflow | " + " | ".join(servers) + " |", "|---|" + "---|" * len(servers)]
    for name in names:
        fair = ranked(results, name)
        best = min(cost(result) for result in fair.values())
        lines.append(f"| {name} | " + " | ".join(cell(results[server][name], best) for server in servers) + " |")
    lines += ["", f"The build takes {seconds:g} s here; each play waits for it. Seconds are not compared: they depend on the machine.", "",
              "## Where another is cheaper", ""]
    reasons = []
    for name in names:
        fair = ranked(results, name)
        best = min(fair, key=lambda server: cost(fair[server]))
        if cost(fair[best]) < cost(fair[OURS]):
            reasons.append(f"- **{name}**: {best} needs {cost(fair[best])} tokens in {fair[best]['calls']} calls, ours "
                           f"{cost(fair[OURS])} in {fair[OURS]['calls']}.")
    lines += reasons or ["Nowhere."]
    failed = [f"- {server}, {name}: {results[server][name]['failed'][:160]}" for server in servers for name in names
              if "failed" in results[server][name]]
    if failed:
        lines += ["", "## Plays that fail", ""] + [line.replace("\n", " ") for line in failed]
    lines += ["", "## The list of tools", "", "What a model reads in every conversation, whether it uses the tools or not.", "",
              "| server | tools | tokens | bytes of `tools/list` |", "|---|---|---|---|"]
    lines += [f"| {server} | {one['tools']} | {one['tokens']:,} | {one['bytes']:,} |" for server, one in lists.items()]
    with open(os.path.join(docs, "economy.md"), "w") as page:
        page.write("\n".join(lines) + "\n")
    with open(os.path.join(docs, "economy.svg"), "w") as picture:
        picture.write(bars(results, servers, names))


def bars(results, servers, names):
    """A group of bars for each workflow; what fails has none, what sleeps by guess is pale."""
    left, width, bar, gap = 90, 740, 11, 14
    most = max(cost(results[server][name]) for server in servers for name in names if "failed" not in results[server][name])
    rows, y = [], 34
    for place, server in enumerate(servers):
        x = left + place * 118
        rows.append(f'<rect x="{x}" y="8" width="10" height="10" fill="{COLOURS[place]}"/><text x="{x + 14}" y="17">{server}</text>')
    for name in names:
        middle = y + len(servers) * bar / 2 + 4
        rows.append(f'<text x="{left - 8}" y="{middle:.0f}" text-anchor="end">{name}</text>')
        for place, server in enumerate(servers):
            result = results[server][name]
            if "failed" in result:
                rows.append(f'<text x="{left + 4}" y="{y + bar - 2}" class="n">fails</text>')
            else:
                length = max(1, cost(result) / most * width)
                pale = ' fill-opacity="0.35"' if result["slept"] else ""
                rows.append(f'<rect x="{left}" y="{y}" width="{length:.0f}" height="{bar - 2}" fill="{COLOURS[place]}"{pale}/>'
                            f'<text x="{left + length + 4:.0f}" y="{y + bar - 2}" class="n">{cost(result)}</text>')
            y += bar
        y += gap
    style = "text{font:12px sans-serif;fill:#57606a}.n{font-size:9px}"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 50} {y}" role="img" '
            f'aria-label="Tokens for each workflow and server"><style>{style}</style>' + "".join(rows) + "</svg>\n")
