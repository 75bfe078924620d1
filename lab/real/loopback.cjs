// Preloaded into Node servers that listen on every interface, or on a port that cannot be set:
// node --require loopback.cjs. They then listen on 127.0.0.1, and on LOOPBACK_PORT if that is set.
const net = require("node:net");

const listen = net.Server.prototype.listen;
const port = process.env.LOOPBACK_PORT;

net.Server.prototype.listen = function (...args) {
  const [first] = args;
  if (first !== null && typeof first === "object") {
    if ("port" in first) args[0] = { ...first, port: port ?? first.port, host: "127.0.0.1" };
  } else if (!Number.isNaN(Number(first))) {
    const rest = typeof args[1] === "string" ? args.slice(2) : args.slice(1);
    args = [Number(port ?? first), "127.0.0.1", ...rest];
  }
  return listen.apply(this, args);
};
