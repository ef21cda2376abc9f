// The middle of a small shop: answers an item of PostgreSQL as JSON. `node shop.js ADDRESS PORT` says where the database is.
// It speaks PostgreSQL's protocol itself, as nothing but Node.js has to be installed; it logs in as bench, without a password.
// WEB_CONCURRENCY says how many processes answer; each keeps CONNECTIONS to the database.
"use strict";
const cluster = require("node:cluster");
const http = require("node:http");
const net = require("node:net");

const CONNECTIONS = 8;
const ITEMS = 20000;
const [address, port] = process.argv.slice(2);
const workers = Number(process.env.WEB_CONCURRENCY || 0);

function message(type, ...parts) {
  const body = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(`${part}\0`) : part)));
  const head = Buffer.alloc(type.length + 4);
  head.write(type, 0, "latin1");
  head.writeUInt32BE(body.length + 4, type.length);
  return Buffer.concat([head, body]);
}

const number = (bytes, value) => {
  const buffer = Buffer.alloc(bytes);
  buffer.writeIntBE(value, 0, bytes);
  return buffer;
};

// A connection with one prepared statement; one question at a time.
class Connection {
  constructor(isIdle) {
    this.isIdle = isIdle;
    this.rest = Buffer.alloc(0);
    this.answer = this.error = this.row = null;
    this.socket = net.connect(Number(port), address);
    this.socket.setNoDelay(true);
    this.socket.on("connect", () => {
      this.socket.write(message("", number(4, 196608), "user", "bench", "database", "bench", ""));
      const sql = "SELECT id::text, name, price::text, stock::text FROM item WHERE id = $1::int";
      this.socket.write(Buffer.concat([message("P", "item", sql, number(2, 0)), message("S")]));
      this.waits = 2; // ReadyForQuery comes after the login, and again after the statement
    });
    this.socket.on("data", (data) => this.read(data));
    for (const end of ["error", "close"]) {
      this.socket.on(end, (error) => this.fail(`the database is gone${error?.message ? `: ${error.message}` : ""}`));
    }
  }

  fail(text) {
    this.isGone = true;
    console.error(text);
    this.answer?.(text, null);
    this.answer = null;
    this.isIdle(this);
  }

  ask(id, answer) {
    this.answer = answer;
    this.row = this.error = null;
    const bind = message("B", "", "item", number(2, 0), number(2, 1), number(4, String(id).length), Buffer.from(String(id)), number(2, 0));
    this.socket.write(Buffer.concat([bind, message("E", "", number(4, 0)), message("S")]));
  }

  read(data) {
    this.rest = this.rest.length ? Buffer.concat([this.rest, data]) : data;
    while (this.rest.length > 4 && this.rest.length > this.rest.readUInt32BE(1)) {
      const end = this.rest.readUInt32BE(1) + 1;
      this.take(String.fromCharCode(this.rest[0]), this.rest.subarray(5, end));
      this.rest = this.rest.subarray(end);
    }
  }

  take(type, body) {
    if (type === "D") {
      this.row = [];
      for (let at = 2; at < body.length; ) {
        const length = body.readInt32BE(at);
        this.row.push(body.toString("utf8", at + 4, at + 4 + length));
        at += 4 + length;
      }
    } else if (type === "E") {
      this.error = body.toString("utf8").split("\0").join(" ");
      if (this.waits) {
        this.fail(this.error);
      }
    } else if (type === "Z" && (!this.waits || --this.waits === 0)) {
      const answer = this.answer;
      this.answer = null;
      answer?.(this.error, this.row);
      this.isIdle(this);
    }
  }
}

function serve() {
  const idle = [];
  const waiting = [];
  let last = 0;

  function freed(connection) {
    if (connection.isGone) {
      process.exit(1); // whoever started it sees that a tier has gone
    } else if (waiting.length) {
      connection.ask(...waiting.shift());
    } else {
      idle.push(connection);
    }
  }
  for (let n = 0; n < CONNECTIONS; n += 1) {
    new Connection(freed);
  }
  const server = http.createServer((_request, response) => {
    last = (last * 7919 + 12289) % ITEMS; // another one each time, the same ones in each run
    const question = [
      last + 1,
      (error, row) => {
        const [id, name, price, stock] = row ?? [];
        const item = error ? { error } : { id: Number(id), name, price: Number(price), stock: Number(stock) };
        const body = JSON.stringify(item);
        response.writeHead(error ? 503 : 200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) });
        response.end(body);
      },
    ];
    if (idle.length) {
      idle.pop().ask(...question);
    } else {
      waiting.push(question);
    }
  });
  server.listen(Number(process.env.PORT || 8080), process.env.HOST || "::");
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
  serve();
}
