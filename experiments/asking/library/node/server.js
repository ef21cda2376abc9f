// A small server of Node's own modules: it makes a list, sorts it and answers it as JSON. WEB_CONCURRENCY says how many processes answer.
"use strict";
const cluster = require("node:cluster");
const http = require("node:http");

const workers = Number(process.env.WEB_CONCURRENCY || 0);

function people() {
  const list = [];
  for (let n = 0; n < 50; n += 1) {
    list.push({ name: `person ${(n * 7919) % 1000}`, age: (n * 31) % 90, tags: [`group-${n % 7}`, `city-${n % 11}`] });
  }
  return list.sort((one, other) => one.name.localeCompare(other.name));
}

if (workers > 0 && cluster.isPrimary) {
  for (let n = 0; n < workers; n += 1) {
    cluster.fork();
  }
  cluster.on("exit", (worker) => {
    console.error(`worker ${worker.id} ended`);
    process.exit(1);
  });
} else {
  const server = http.createServer((_request, response) => {
    const body = JSON.stringify(people());
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) });
    response.end(body);
  });
  server.listen(Number(process.env.PORT || 8080), process.env.HOST || "::");
}
