/** The admin port of a Mooncake master that holds N objects in memory, for object-state.mjs. */
import { createServer } from 'node:http';
import { objectKey } from './object-keys.mjs';

const objectCount = Number(process.argv[2]);
const replicas = [
  { size_: 65536, buffer_address_: 1, protocol_: 'tcp', transport_endpoint_: 'h:1' },
];

function answerOf(keys) {
  const of = (key) => [key, { ok: true, error: null, values: replicas, local_disk_values: null }];
  return JSON.stringify({ success: true, data: Object.fromEntries(keys.map(of)) });
}

const list = Buffer.from(
  Array.from({ length: objectCount }, (_, number) => `${objectKey(number)}\n`).join(''),
);

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://master');
  if (pathname === '/get_all_keys') response.end(list);
  else response.end(answerOf((searchParams.get('keys') ?? '').split(',')));
});
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send(server.address().port));
