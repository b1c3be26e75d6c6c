// Adds the bearer token to every request and passes everything else on as it is: the conformance suite has no way to
// send one. Prints its own port.
//
//   with-token.mjs TARGET_PORT TOKEN
//
// A Host or Origin that names the port of this program gets that of the server, all others stay: the server judges them.

import http from 'node:http';

const [port, token] = process.argv.slice(2);
const server = http.createServer((request, response) => {
  const mine = server.address().port;
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  for (const name of ['host', 'origin']) {
    if (headers[name]) headers[name] = headers[name].replace(`:${mine}`, `:${port}`);
  }
  const onward = http.request({ host: '127.0.0.1', port, method: request.method, path: request.url, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    response.flushHeaders();
    answer.pipe(response);
  });
  onward.on('error', () => response.destroy());
  response.on('close', () => onward.destroy());
  request.pipe(onward);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
