/**
 * Further subscribers of the ZMQ plane, all in one process, which read and forget.
 *
 *   node bench/more-routers.mjs ENDPOINT COUNT
 *
 * Prints   {"subscribed": COUNT} as JSON once all have said what they want. Ends with its input.
 */
import { subscribeTo } from './zmtp-subscription.mjs';

const READ_BYTES = 1 << 20;

const [endpoint, count] = process.argv.slice(2);
// Nobody looks at what lies in it.
const room = Buffer.allocUnsafe(READ_BYTES);

process.stdin.resume().on('end', () => process.exit(0));
await Promise.all(Array.from({ length: Number(count) }, () => subscribeTo(endpoint, room)));
process.stdout.write(`${JSON.stringify({ subscribed: Number(count) })}\n`);
