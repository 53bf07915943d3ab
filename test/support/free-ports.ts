import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

async function listen(port: number): Promise<Server | null> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch {
    return null;
  }
}

/** First of `count` adjacent ports that were free a moment ago. */
export async function freePorts(count: number): Promise<number> {
  for (;;) {
    const first = await listen(0);
    const address = first?.address();
    if (first === null || typeof address !== 'object' || address === null) continue;
    const others: (Server | null)[] = [];
    for (let offset = 1; offset < count; offset++) others.push(await listen(address.port + offset));
    for (const server of [first, ...others]) server?.close();
    if (others.every((server) => server !== null)) return address.port;
  }
}
