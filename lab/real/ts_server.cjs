// The tools of sdk_server.py on the TypeScript SDK 2.x, in both eras.
//
//     NODE_PATH=<node_modules> node ts_server.cjs PORT [--sessions]
//
// Without sessions the handshake era is served by the SDK's own stateless fallback.
const { randomUUID } = require("node:crypto");
const { createServer } = require("node:http");
const {
  createMcpHandler,
  isLegacyRequest,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} = require("@modelcontextprotocol/server");
const { toNodeHandler } = require("@modelcontextprotocol/node");
const { z } = require("zod");

const [port, flag] = process.argv.slice(2);
const said = (text) => ({ content: [{ type: "text", text: String(text) }] });

function made() {
  const server = new McpServer({ name: "real", version: "1" });
  const tool = (name, inputSchema, answer) => server.registerTool(name, { inputSchema }, answer);

  tool("echo", z.object({ text: z.string() }), ({ text }) => said(text));
  tool("add", z.object({ a: z.number(), b: z.number() }), ({ a, b }) => said(a + b));
  tool("weather", z.object({ city: z.string() }), ({ city }) => {
    const forecast = { city, forecast: ["dry", "wet", "dry"], degrees: 21.5 };
    return { ...said(JSON.stringify(forecast)), structuredContent: forecast };
  });
  tool("count", z.object({ to: z.number() }), async ({ to }, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (let progress = 0; progressToken !== undefined && progress < to; progress++) {
      const params = { progressToken, progress, total: to };
      await mcpReq.notify({ method: "notifications/progress", params });
    }
    return said(`counted to ${to}`);
  });
  return server;
}

const sessions = new Map();

async function inItsSession(request) {
  let transport = sessions.get(request.headers.get("mcp-session-id"));
  if (!transport) {
    transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    await made().connect(transport);
  }
  return transport.handleRequest(request);
}

const stateless = createMcpHandler(made, flag ? { legacy: "reject" } : {});
const fetch = async (request) =>
  flag && (await isLegacyRequest(request)) ? inItsSession(request) : stateless.fetch(request);

const answer = toNodeHandler({ fetch });
createServer((request, response) => answer(request, response)).listen(Number(port), "127.0.0.1");
