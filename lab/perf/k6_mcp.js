// The same work as one virtual user of the harness: one session, then validated tools/call as fast as it goes.
import http from 'k6/http';
import { check } from 'k6';

const url = __ENV.MCP_URL;
const base = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
export const options = { thresholds: { checks: ['rate==1'] } }; // any wrong reply: exit code 99
let session = null, id = 0;

function rpc(method, params) {
  id++;
  const headers = session ? Object.assign({ 'Mcp-Session-Id': session, 'MCP-Protocol-Version': '2025-06-18' }, base) : base;
  const r = http.post(url, JSON.stringify({ jsonrpc: '2.0', id, method, params }), { headers, tags: { name: method } });
  let body = r.body;
  if ((r.headers['Content-Type'] || '').startsWith('text/event-stream'))
    for (const line of body.split('\n')) if (line.startsWith('data: ')) body = line.slice(6);
  const reply = JSON.parse(body);
  if (method === 'initialize') session = r.headers['Mcp-Session-Id'];
  check(reply, { 'our reply, no error': (o) => o.id === id && o.result && !o.result.isError });
}

export default function () {
  if (!session) rpc('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'k6', version: '1' } });
  rpc('tools/call', { name: 'echo', arguments: { message: 'hello' } });
}
