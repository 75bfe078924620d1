// A very fast MCP server on 127.0.0.1 that does nothing, for measuring the load generator itself.
// One thread, epoll, keep-alive; Linux. Built by lab/null_server.py.
//
//   null_server PORT [--mode json|sse|open] [--text BYTES] [--blocks N] [--events N]
//                    [--delay TOOL=MS[,MS:SHARE]]... [--seed N] [--record FILE]
//
//   --mode    a reply is JSON, an event stream that ends, or one that stays open after the reply
//   --text    bytes of text in each content block of a tool's result; --blocks of them
//   --events  progress notifications before the reply, in a stream, each as large as a block
//   --delay   the tool answers after so many milliseconds, a share of the calls after the others
//   --record  on SIGTERM, a line per tools/call: JSON-RPC id, delay drawn, time taken (both in us)
//
// Handshake revisions and 2026-07-28 (a request is of the era that its _meta names; headers are not
// looked at): initialize, ping, server/discover, tools/list, tools/call, notifications, DELETE.
// GET /stats tells how many MCP requests were answered and what CPU that took.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAXFD 65536
#define BUF 65536
#define MAXTOOLS 8
#define ENVELOPE "io.modelcontextprotocol/protocolVersion"

enum mode { JSON, SSE, OPEN };
typedef struct { const char *at; size_t len; } slice;
typedef struct { char *buf; int len; char *rest; size_t rest_len, rest_done; uint32_t life; char busy; } conn;
typedef struct { const char *name; double usual_ms, other_ms, share; } tool;
typedef struct { uint64_t due, arrived; long drawn_us; int fd; uint32_t life; char modern; char id[64]; } pending;
typedef struct { char id[24]; long drawn_us; uint64_t took_ns; } answered;

static enum mode mode = JSON;
static int ep, timer_fd;
static conn conns[MAXFD];
static tool tools[MAXTOOLS];
static int tool_count;
static pending *heap;
static size_t heap_len, heap_size;
static answered *record;
static size_t record_len, record_size;
static const char *record_file;
static char *result_body, *preface, tools_body[4096];
static size_t result_len, preface_len;
static long requests;
static uint64_t seed = 1, armed;
static volatile sig_atomic_t ended;

static void die(const char *what) { perror(what); exit(1); }
static void end(int n) { (void)n; ended = 1; }
static void *more(void *old, size_t size) { void *p = realloc(old, size); if (!p) die("memory"); return p; }
static uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static double chance(void) { // xorshift64*: the same draws for the same seed
  seed ^= seed >> 12; seed ^= seed << 25; seed ^= seed >> 27;
  return (double)((seed * 2685821657736338717ull) >> 11) / 9007199254740992.0;
}

// ---- JSON, as far as needed: the value of a key at the top level, or inside an object

static const char *skip_string(const char *p, const char *stop) {
  for (p++; p < stop && *p != '"'; p++) if (*p == '\\') p++;
  return p;
}

static slice member(slice object, const char *key) {
  const char *p = object.at, *stop = p + object.len;
  size_t key_len = strlen(key);
  int depth = 0;
  for (; p < stop; p++) {
    if (*p == '{' || *p == '[') depth++;
    else if (*p == '}' || *p == ']') depth--;
    else if (*p == '"') {
      const char *began = p + 1;
      p = skip_string(p, stop);
      if (depth != 1 || (size_t)(p - began) != key_len || memcmp(began, key, key_len)) continue;
      const char *q = p + 1;
      while (q < stop && (*q == ' ' || *q == '\t' || *q == '\r' || *q == '\n')) q++;
      if (q >= stop || *q != ':') continue; // a value that looks like the key
      for (q++; q < stop && (*q == ' ' || *q == '\t' || *q == '\r' || *q == '\n'); q++);
      const char *value = q;
      int inside = 0;
      for (; q < stop; q++) {
        if (*q == '"') { q = skip_string(q, stop); if (!inside) { q++; break; } }
        else if (*q == '{' || *q == '[') inside++;
        else if (*q == '}' || *q == ']') { if (!inside) break; if (!--inside) { q++; break; } }
        else if (*q == ',' && !inside) break;
      }
      return (slice){value, q > stop ? 0 : (size_t)(q - value)};
    }
  }
  return (slice){0, 0};
}

static int is_text(slice value, const char *text) {
  size_t n = strlen(text);
  return value.len == n + 2 && !memcmp(value.at + 1, text, n);
}

static void serve_buffered(int fd);

// ---- writing

static void close_conn(int fd) {
  conn *c = &conns[fd];
  free(c->rest);
  c->rest = NULL; c->len = 0; c->busy = 0; c->life++;
  close(fd);
}

static void send_parts(int fd, struct iovec *parts, int n) {
  size_t total = 0;
  for (int i = 0; i < n; i++) total += parts[i].iov_len;
  ssize_t done = writev(fd, parts, n);
  if (done < 0 && errno != EAGAIN) { close_conn(fd); return; }
  if (done < 0) done = 0;
  if ((size_t)done == total) return;
  conn *c = &conns[fd]; // more than the socket takes: keep the rest until it does
  c->rest_len = total - done; c->rest_done = 0; c->rest = more(NULL, c->rest_len);
  char *to = c->rest;
  for (int i = 0; i < n; i++) {
    size_t skip = (size_t)done < parts[i].iov_len ? (size_t)done : parts[i].iov_len;
    memcpy(to, (char *)parts[i].iov_base + skip, parts[i].iov_len - skip);
    to += parts[i].iov_len - skip; done -= skip;
  }
  struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT, .data.fd = fd};
  epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev);
}

static void send_more(int fd) {
  conn *c = &conns[fd];
  ssize_t done = write(fd, c->rest + c->rest_done, c->rest_len - c->rest_done);
  if (done < 0) { if (errno != EAGAIN) close_conn(fd); return; }
  c->rest_done += done;
  if (c->rest_done < c->rest_len) return;
  free(c->rest); c->rest = NULL;
  struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
  epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev);
  serve_buffered(fd);
}

static void send_status(int fd, const char *status) {
  char head[128];
  int n = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", status);
  struct iovec part = {head, n};
  send_parts(fd, &part, 1);
}

// One JSON-RPC answer: `lead` and `tail` around the request's id, in the framing of the mode.
static void send_answer(int fd, const char *status, const char *extra, const char *id, const char *lead,
                        const char *tail, size_t tail_len, int is_call) {
  char head[512], start[256], size[32];
  int stream = (mode == SSE || (mode == OPEN && is_call)) && !strncmp(status, "200", 3);
  int start_len = snprintf(start, sizeof start, "%s{\"jsonrpc\":\"2.0\",\"id\":%s,%s", stream ? "event: message\r\ndata: " : "", id, lead);
  size_t before = stream && is_call ? preface_len : 0, body = before + start_len + tail_len + (stream ? 4 : 0);
  int head_len, chunked = stream && mode == OPEN, size_len = 0;
  if (chunked) {
    head_len = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    size_len = snprintf(size, sizeof size, "%zx\r\n", body);
  } else
    head_len = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Type: %s\r\n%sContent-Length: %zu\r\n\r\n", status,
                        stream ? "text/event-stream" : "application/json", extra, body);
  struct iovec parts[] = {{head, head_len}, {size, size_len}, {preface, before}, {start, start_len},
                          {(char *)tail, tail_len}, {"\r\n\r\n\r\n", (stream ? 4 : 0) + (chunked ? 2 : 0)}};
  send_parts(fd, parts, 6);
}

static void send_error(int fd, const char *status, const char *id, const char *error) {
  send_answer(fd, status, "", id, "\"error\":", error, strlen(error), 0);
}

static void send_call(int fd, const char *id, int modern) {
  send_answer(fd, "200 OK", "", id, modern ? "\"result\":{\"resultType\":\"complete\"," : "\"result\":{", result_body, result_len, 1);
}

// ---- delays

static void swap(size_t a, size_t b) { pending t = heap[a]; heap[a] = heap[b]; heap[b] = t; }

static void wait_until(pending one) {
  if (heap_len == heap_size) heap = more(heap, (heap_size = heap_size ? heap_size * 2 : 1024) * sizeof *heap);
  size_t i = heap_len++;
  heap[i] = one;
  for (; i && heap[(i - 1) / 2].due > heap[i].due; i = (i - 1) / 2) swap(i, (i - 1) / 2);
}

static pending earliest(void) {
  pending first = heap[0];
  heap[0] = heap[--heap_len];
  for (size_t i = 0;;) {
    size_t least = i, l = 2 * i + 1, r = l + 1;
    if (l < heap_len && heap[l].due < heap[least].due) least = l;
    if (r < heap_len && heap[r].due < heap[least].due) least = r;
    if (least == i) return first;
    swap(i, least); i = least;
  }
}

static void keep(const pending *p) {
  if (!record_file) return;
  if (record_len == record_size) record = more(record, (record_size = record_size ? record_size * 2 : 65536) * sizeof *record);
  answered *r = &record[record_len++];
  snprintf(r->id, sizeof r->id, "%.23s", p->id);
  r->drawn_us = p->drawn_us; r->took_ns = now() - p->arrived;
}

static void save_record(void) {
  FILE *f = fopen(record_file, "w");
  if (!f) die(record_file);
  for (size_t i = 0; i < record_len; i++) fprintf(f, "%s,%ld,%.1f\n", record[i].id, record[i].drawn_us, record[i].took_ns / 1e3);
  if (fclose(f)) die(record_file);
}

static void answer_due(void) {
  for (uint64_t t = now(); heap_len && heap[0].due <= t; t = now()) {
    pending p = earliest();
    if (conns[p.fd].life != p.life) continue; // its client has gone
    conns[p.fd].busy = 0;
    send_call(p.fd, p.id, p.modern);
    keep(&p);
    if (conns[p.fd].life == p.life) serve_buffered(p.fd);
  }
}

static void arm(void) {
  uint64_t due = heap_len ? heap[0].due : 0;
  if (due == armed) return;
  armed = due;
  struct itimerspec at = {.it_value = {due / 1000000000ull, due % 1000000000ull}};
  timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

// ---- requests

static void call(int fd, const char *id, slice params, int modern) {
  pending p = {.arrived = now(), .fd = fd, .life = conns[fd].life, .modern = modern};
  snprintf(p.id, sizeof p.id, "%s", id);
  slice name = tool_count ? member(params, "name") : (slice){0, 0};
  for (int i = 0; i < tool_count; i++)
    if (is_text(name, tools[i].name)) {
      double ms = tools[i].share && chance() < tools[i].share ? tools[i].other_ms : tools[i].usual_ms;
      p.drawn_us = (long)(ms * 1000); p.due = p.arrived + p.drawn_us * 1000;
      conns[fd].busy = 1;
      wait_until(p);
      return;
    }
  send_call(fd, id, modern);
  keep(&p);
}

static void initialize(int fd, const char *id, slice params) {
  static const char *known[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
  slice asked = member(params, "protocolVersion");
  const char *version = known[0];
  for (int i = 0; i < 4; i++) if (is_text(asked, known[i])) version = known[i];
  char tail[256];
  int n = snprintf(tail, sizeof tail, "\"result\":{\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"null_server\",\"version\":\"1\"}}}", version);
  send_answer(fd, "200 OK", "Mcp-Session-Id: s-1868a90c-7c2f-4f0e\r\n", id, "", tail, n, 0);
}

static void post(int fd, slice body) {
  requests++;
  slice method = member(body, "method"), found = member(body, "id"), params = member(body, "params");
  if (!body.len || *body.at != '{') { send_error(fd, "400 Bad Request", "null", "{\"code\":-32700,\"message\":\"Parse error\"}}"); return; }
  if (!method.len || !found.len) { send_status(fd, "202 Accepted"); return; } // an answer, a notification
  char id[64];
  snprintf(id, sizeof id, "%.*s", found.len < 63 ? (int)found.len : 63, found.at);
  slice version = params.len ? member(member(params, "_meta"), ENVELOPE) : (slice){0, 0};
  int modern = version.len > 0;
  if (modern && !is_text(version, "2026-07-28")) {
    char error[256];
    snprintf(error, sizeof error, "{\"code\":-32022,\"message\":\"Unsupported protocol version\",\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":%.*s}}}",
             version.len < 64 ? (int)version.len : 2, version.len < 64 ? version.at : "\"\"");
    send_error(fd, "400 Bad Request", id, error);
  } else if (is_text(method, "tools/call")) call(fd, id, params, modern);
  else if (is_text(method, "tools/list"))
    send_answer(fd, "200 OK", "", id, modern ? "\"result\":{\"resultType\":\"complete\",\"ttlMs\":300000,\"cacheScope\":\"public\"," : "\"result\":{", tools_body, strlen(tools_body), 0);
  else if (modern && is_text(method, "server/discover")) {
    const char *tail = "\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}},\"ttlMs\":300000,\"cacheScope\":\"public\","
                       "\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"null_server\",\"version\":\"1\"}}}}";
    send_answer(fd, "200 OK", "", id, "", tail, strlen(tail), 0);
  } else if (!modern && is_text(method, "initialize")) initialize(fd, id, params);
  else if (!modern && is_text(method, "ping")) send_answer(fd, "200 OK", "", id, "", "\"result\":{}}", 12, 0);
  else send_error(fd, modern ? "404 Not Found" : "200 OK", id, "{\"code\":-32601,\"message\":\"Method not found\"}}");
}

static void serve(int fd, const char *head, slice body) {
  if (!strncmp(head, "POST ", 5)) post(fd, body);
  else if (!strncmp(head, "DELETE ", 7)) { requests++; send_status(fd, strcasestr(head, "mcp-session-id:") ? "200 OK" : "405 Method Not Allowed"); }
  else if (!strncmp(head, "GET /stats ", 11)) {
    struct rusage u; getrusage(RUSAGE_SELF, &u);
    char out[256], stats[128];
    int n = snprintf(stats, sizeof stats, "{\"requests\":%ld,\"cpu_s\":%.6f}", requests, u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
    n = snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", n, stats);
    struct iovec part = {out, n};
    send_parts(fd, &part, 1);
  } else send_status(fd, "405 Method Not Allowed");
}

static void serve_buffered(int fd) {
  conn *c = &conns[fd];
  uint32_t life = c->life;
  while (c->len && !c->busy && !c->rest) {
    c->buf[c->len] = 0;
    char *e = memmem(c->buf, c->len, "\r\n\r\n", 4);
    if (!e) return;
    int head = e - c->buf + 4, body = 0;
    e[2] = 0; // ends the head for strcasestr; not needed again
    char *h = strcasestr(c->buf, "\ncontent-length:");
    if (h) body = atoi(h + 16);
    if (body < 0 || head + body >= BUF) { close_conn(fd); return; }
    if (c->len < head + body) { e[2] = '\r'; return; }
    serve(fd, c->buf, (slice){c->buf + head, body});
    if (c->life != life) return;
    memmove(c->buf, c->buf + head + body, c->len - head - body);
    c->len -= head + body;
  }
}

static void receive(int fd) {
  conn *c = &conns[fd];
  int r = read(fd, c->buf + c->len, BUF - 1 - c->len);
  if (r < 0 && errno == EAGAIN) return;
  if (r <= 0) { close_conn(fd); return; } // it has gone, or its request is larger than any of ours
  c->len += r;
  serve_buffered(fd);
}

// ---- start

static void make_bodies(int text_bytes, int blocks, int events) {
  size_t room = (size_t)blocks * (text_bytes + 64) + 128, event = text_bytes + 256;
  char *p = result_body = more(NULL, room), *text = more(NULL, text_bytes + 1);
  memset(text, 'x', text_bytes); text[text_bytes] = 0;
  p += sprintf(p, "\"content\":[");
  for (int i = 0; i < blocks; i++) p += sprintf(p, "%s{\"type\":\"text\",\"text\":\"%s\"}", i ? "," : "", text);
  p += sprintf(p, "],\"isError\":false}}");
  result_len = p - result_body;
  p = preface = more(NULL, events * event + 1);
  for (int i = 0; i < events; i++)
    p += sprintf(p, "event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":%d,\"message\":\"%s\"}}\r\n\r\n", i + 1, text);
  preface_len = p - preface;
  free(text);
  p = tools_body + sprintf(tools_body, "\"tools\":[");
  for (int i = -1; i < tool_count; i++)
    p += snprintf(p, 250, "%s{\"name\":\"%.40s\",\"description\":\"Echo.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\"}},\"required\":[\"message\"]},\"annotations\":{\"readOnlyHint\":true}}", i < 0 ? "" : ",", i < 0 ? "echo" : tools[i].name);
  strcpy(p, "]}}");
}

static void add_delay(char *spec) {
  char *equals = strchr(spec, '=');
  if (!equals || tool_count == MAXTOOLS) { fprintf(stderr, "null_server: --delay TOOL=MS[,MS:SHARE], %d at most\n", MAXTOOLS); exit(2); }
  *equals = 0;
  tool *t = &tools[tool_count++];
  t->name = spec;
  sscanf(equals + 1, "%lf,%lf:%lf", &t->usual_ms, &t->other_ms, &t->share);
}

static int listen_on(int port) {
  int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(s, (void *)&a, sizeof a) || listen(s, 4096)) die("null_server");
  return s;
}

static void accept_all(int listener) {
  int fd, one = 1;
  while ((fd = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) {
    if (fd >= MAXFD) { close(fd); continue; }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (!conns[fd].buf) conns[fd].buf = more(NULL, BUF);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
  }
}

int main(int argc, char **argv) {
  int text_bytes = 200, blocks = 1, events = 0;
  for (int i = 2; i + 1 < argc; i += 2) {
    char *flag = argv[i], *value = argv[i + 1];
    if (!strcmp(flag, "--mode")) mode = !strcmp(value, "sse") ? SSE : !strcmp(value, "open") ? OPEN : JSON;
    else if (!strcmp(flag, "--text")) text_bytes = atoi(value);
    else if (!strcmp(flag, "--blocks")) blocks = atoi(value);
    else if (!strcmp(flag, "--events")) events = atoi(value);
    else if (!strcmp(flag, "--seed")) seed = strtoull(value, 0, 10) * 2654435769ull + 1;
    else if (!strcmp(flag, "--record")) record_file = value;
    else if (!strcmp(flag, "--delay")) add_delay(value);
    else { fprintf(stderr, "null_server: unknown flag %s\n", flag); return 2; }
  }
  if (argc < 2 || argc % 2) { fprintf(stderr, "usage: null_server PORT [--flag value]...\n"); return 2; }
  make_bodies(text_bytes, blocks, events);
  struct rlimit files;
  if (!getrlimit(RLIMIT_NOFILE, &files)) { files.rlim_cur = files.rlim_max; setrlimit(RLIMIT_NOFILE, &files); }
  prctl(PR_SET_TIMERSLACK, 1);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, end);
  signal(SIGINT, end);
  int listener = listen_on(atoi(argv[1]));
  ep = epoll_create1(0);
  timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  struct epoll_event ev = {.events = EPOLLIN, .data.fd = listener}, evs[256];
  epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev);
  ev.data.fd = timer_fd;
  epoll_ctl(ep, EPOLL_CTL_ADD, timer_fd, &ev);
  printf("listening on %s\n", argv[1]);
  fflush(stdout);
  while (!ended) {
    int k = epoll_wait(ep, evs, 256, -1);
    for (int i = 0; i < k; i++) {
      int fd = evs[i].data.fd;
      if (fd == listener) accept_all(listener);
      else if (fd == timer_fd) { uint64_t n; if (read(fd, &n, 8) == 8) armed = 0; }
      else if (conns[fd].rest && (evs[i].events & EPOLLOUT)) send_more(fd);
      else receive(fd);
    }
    answer_due();
    arm();
  }
  if (record_file) save_record();
  return 0;
}
