// The server of floor.rs for Node: floor.mjs DIRECTORY serves the logs in a directory, and prints its URL.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const [jobs] = process.argv.slice(2);
const followed = new Map();

async function read(log, clients) {
  let next = 2;
  for (;;) {
    let segment;
    try {
      segment = fs.readFileSync(path.join(log, `${String(next).padStart(20, '0')}.jsonl`), 'utf8');
    } catch {
      await sleep(200);
      continue;
    }
    for (const line of segment.trimEnd().split('\n')) {
      const event = `id: ${next}\nevent: user.message\ndata: ${line}\n\n`;
      for (const client of clients) client.write(event);
      next += 1;
    }
  }
}

const server = http.createServer((request, response) => {
  const job = request.url.split('/')[3];
  if (!followed.has(job)) {
    followed.set(job, new Set());
    read(path.join(jobs, job), followed.get(job));
  }
  const clients = followed.get(job);
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.flushHeaders();
  clients.add(response);
  response.on('close', () => clients.delete(response));
});
server.listen({ host: '127.0.0.1', port: 0, backlog: 1024 }, () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
