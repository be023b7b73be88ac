// The servers of the tests: the scripted model and `bloomery serve`, or the gateway on a cluster.

import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const HERE = import.meta.dirname ?? new URL('.', import.meta.url).pathname;

/** Whether hack/page-test --cluster has installed the gateway on a cluster. */
export const ON_CLUSTER = Boolean(process.env.GATEWAY_URL);

/** Starts a program, and waits until a line of its stderr matches. Returns the process and the match. */
async function start(program, args, pattern) {
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'pipe'] });
  child.stderr.setEncoding('utf8');
  let text = '';
  const found = await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`${program} ended with ${code}: ${text}`)));
    child.stderr.on('data', (part) => {
      text += part;
      const match = pattern.exec(text);
      if (match) resolve(match);
    });
  });
  child.removeAllListeners('exit');
  return { child, found };
}

async function stop(child) {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => { child.on('exit', resolve); });
  child.kill('SIGINT');
  // The second signal stops at once.
  const timer = setTimeout(() => child.kill('SIGINT'), 2000);
  await ended;
  clearTimeout(timer);
}

/** Returns the servers of a cluster, with the pages of two users. The second one may only read. */
function clusterServers() {
  const { GATEWAY_URL, GATEWAY_TOKEN_OWNER, GATEWAY_TOKEN_VIEWER } = process.env;
  return {
    url: `${GATEWAY_URL}/#token=${GATEWAY_TOKEN_OWNER}`,
    viewerUrl: `${GATEWAY_URL}/#token=${GATEWAY_TOKEN_VIEWER}`,
    notes: 'writable-claim:notes',
    refusal: 'The API server of the cluster does not accept the bearer token.',
    tools: 'The Skill has no tools of a server that its policy allows.',
    end: async () => {},
  };
}

/**
 * Starts the model and the server, with the Skills of `memory`. Returns the URL of the page, the binding of the notes, the page's texts
 * for a wrong token and for the tools of a Skill, and a function that ends both.
 */
export async function startServers() {
  if (ON_CLUSTER) return clusterServers();
  const root = mkdtempSync(join(tmpdir(), 'bloomery-page-'));
  mkdirSync(join(root, 'notes'));
  writeFileSync(join(root, 'notes', 'welcome.txt'), 'Welcome, <b>all</b>\n'.repeat(40));
  cpSync(join(HERE, 'memory'), join(root, 'memory'), { recursive: true });
  const listening = /"message":"listening"[^}]*"addr":"([^"]+)"|"addr":"([^"]+)"[^}]*"message":"listening"/u;
  const script = join(HERE, 'script.yaml');
  const model = await start(
    process.env.MODEL_SERVER,
    ['--address', '127.0.0.1', '--port', '0', '--log-format', 'json', '--script', script],
    listening,
  );
  const url = `http://${model.found[1] ?? model.found[2]}/v1`;
  const args = ['serve', '--port', '0', '--root', root, '--memory', join(root, 'memory'), '--model', 'scripted', '--model-url', url];
  const server = await start(process.env.BLOOMERY, args, /Serving (\S+)/u);
  const end = async () => {
    await stop(server.child);
    await stop(model.child);
    rmSync(root, { recursive: true });
  };
  return { url: server.found[1], notes: join(root, 'notes'), refusal: 'The header Authorization must be', tools: 'ask_user', end };
}
