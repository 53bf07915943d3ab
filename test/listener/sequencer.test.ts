import { describe, expect, test } from 'vitest';
import { Sequencing } from '../support/sequencing.ts';

/** A batch that names its time, as engines write it. */
function timed(seconds: number): Buffer {
  const time = Buffer.alloc(8);
  time.writeDoubleBE(seconds);
  return Buffer.concat([Buffer.of(0x93, 0xcb), time]);
}

describe('a replay that overtakes what is live', () => {
  function overtaken(): Sequencing {
    const stream = Sequencing.flowing(3);
    expect(stream.live(5)).toEqual(['ask 4']);
    // The engine keeps nothing below 8 any more; 6 and 7 are still on their way.
    expect(stream.replayed(8)).toEqual(['gap 1', '5']);
    expect(stream.end()).toEqual([]);
    return stream;
  }

  test('loses nothing that still comes', () => {
    const stream = overtaken();
    expect([stream.live(6), stream.live(7)]).toEqual([['6'], ['7', '8']]);
    expect([stream.live(8), stream.live(9)]).toEqual([[], ['9']]);
    expect(stream.metrics).toMatchObject({ lostBatches: 1, missingBatches: 3 });
  });

  test('loses what live has passed', () => {
    const stream = overtaken();
    expect(stream.live(7)).toEqual(['gap 1', '7', '8']);
  });

  test('waits half a second after the last batch for what does not come, and asks nobody', () => {
    const stream = overtaken();
    expect(stream.live(6)).toEqual(['6']);
    expect(stream.pass(499)).toEqual([]);
    expect(stream.pass(1)).toEqual(['gap 1', '8']);
  });
});

describe('in order', () => {
  test('batches leave at once, the first replay running or not', () => {
    const stream = new Sequencing();
    expect(stream.link()).toEqual(['ask 0']);
    expect([stream.live(0), stream.live(1)]).toEqual([['0'], ['1']]);
    expect(stream.sequencer.isCaughtUp).toBe(false);
    expect(stream.end()).toEqual([]);
    expect(stream.sequencer.isCaughtUp).toBe(true);
    expect(stream.live(2)).toEqual(['2']);
    expect(stream.metrics.engineReplays.complete).toBe(1);
    expect(stream.metrics).toMatchObject({ missingBatches: 0, lostBatches: 0 });
  });

  test('the history comes before what is live', () => {
    const stream = new Sequencing();
    stream.link();
    expect(stream.live(3)).toEqual([]);
    expect([0, 1, 2].flatMap((sequence) => stream.replayed(sequence))).toEqual([
      '0',
      '1',
      '2',
      '3',
    ]);
    expect([stream.replayed(3), stream.replayed(4), stream.end()]).toEqual([[], ['4'], []]);
    expect(stream.live(4)).toEqual([]);
    expect(stream.metrics).toMatchObject({
      lostBatches: 0,
      duplicateBatches: 2,
      engineRestarts: 0,
    });
  });

  test('the first answer of all has 10 s to begin, and one that never comes is given up', () => {
    const stream = new Sequencing();
    stream.link();
    stream.live(1);
    expect(stream.pass(9999)).toEqual([]);
    expect(stream.pass(201)).toEqual(['drop', 'ask 0']);
    expect(stream.sequencer.isCaughtUp).toBe(false);
    expect(stream.pass(6200)).toEqual(['drop', 'ask 0', 'drop', 'gap 1', '1']);
    expect(stream.sequencer.isCaughtUp).toBe(true);
  });

  test('a history that is trimmed is lost as far as it is', () => {
    const stream = new Sequencing();
    stream.link();
    expect(stream.replayed(5)).toEqual(['gap 5', '5']);
    expect(stream.metrics).toMatchObject({ missingBatches: 5, lostBatches: 5, droppedEvents: 5 });
    expect(stream.end()).toEqual([]);
    expect(stream.metrics.engineReplays.partial).toBe(1);
  });
});

describe('a hole', () => {
  test('is asked for once, filled in order, and costs nothing', () => {
    const stream = Sequencing.flowing(1);
    expect(stream.live(5)).toEqual(['ask 2']);
    expect([stream.live(6), stream.live(8)]).toEqual([[], []]);
    expect([2, 3, 4].flatMap((sequence) => stream.replayed(sequence))).toEqual([
      '2',
      '3',
      '4',
      '5',
      '6',
    ]);
    expect([7, 8].flatMap((sequence) => stream.replayed(sequence))).toEqual(['7', '8']);
    expect(stream.end()).toEqual([]);
    expect(stream.live(9)).toEqual(['9']);
    expect(stream.metrics).toMatchObject({ missingBatches: 4, lostBatches: 0 });
  });

  test('overlap is dropped: before the hole, in it, and live behind it', () => {
    const stream = Sequencing.flowing(0);
    expect(stream.live(2)).toEqual(['ask 1']);
    expect([0, 1, 2, 3].flatMap((sequence) => stream.replayed(sequence))).toEqual(['1', '2', '3']);
    stream.end();
    expect(stream.live(3)).toEqual([]);
    expect(stream.metrics).toMatchObject({ duplicateBatches: 3, engineRestarts: 0 });
  });

  test('what lies before the first batch of an answer is lost', () => {
    const stream = Sequencing.flowing(1);
    stream.live(9);
    expect(stream.replayed(4)).toEqual(['gap 2', '4']);
    expect([5, 6, 7, 8].flatMap((sequence) => stream.replayed(sequence))).toEqual([
      '5',
      '6',
      '7',
      '8',
      '9',
    ]);
    stream.end();
    expect(stream.metrics).toMatchObject({ missingBatches: 7, lostBatches: 2 });
  });

  test('an answer that begins below what was asked for says nothing about what is kept', () => {
    const stream = Sequencing.flowing(1);
    stream.live(5);
    expect(stream.replayed(0)).toEqual([]);
    expect(stream.replayed(4)).toEqual(['gap 2', '4', '5']);
  });

  test('after hole the next one is asked for all the same', () => {
    const stream = Sequencing.flowing(0);
    for (let sequence = 2; sequence < 400; sequence += 2) {
      expect(stream.live(sequence)).toEqual([`ask ${sequence - 1}`]);
      expect(stream.replayed(sequence - 1)).toHaveLength(2);
      stream.end();
      stream.nowMs += 100;
    }
    expect(stream.lost).toBe(0);
  });

  test('one that is answered batch by batch is given up in the end', () => {
    const stream = Sequencing.flowing(0);
    stream.live(200);
    let asks = 1;
    for (let sequence = 1; stream.sequencer.isAsking; sequence++) {
      stream.replayed(sequence);
      asks += stream.pass(1100).filter((action) => action.startsWith('ask')).length;
    }
    expect(asks).toBe(64);
    expect(stream.sequencer.emittedSequence).toBe(200n);
    expect(stream.lost).toBe(199 - 64);
  });

  test('a jump within an answer is asked for again, and lost only when that begins behind it', () => {
    const stream = Sequencing.flowing(0);
    stream.live(6);
    expect([1, 2, 5].flatMap((sequence) => stream.replayed(sequence))).toEqual(['1', '2']);
    expect(stream.end()).toEqual([]);
    expect(stream.pass(100)).toEqual(['ask 3']);
    expect(stream.replayed(4)).toEqual(['gap 1', '4', '5', '6']);
    expect([5, 6].flatMap((sequence) => stream.replayed(sequence))).toEqual([]);
    expect(stream.end()).toEqual([]);
    expect(stream.metrics).toMatchObject({ missingBatches: 5, lostBatches: 1 });
  });

  test('an answer without a batch means that nothing of what was asked is kept', () => {
    const stream = Sequencing.flowing(1);
    stream.live(5);
    expect(stream.end()).toEqual(['gap 3', '5']);
    expect(stream.metrics.engineReplays).toMatchObject({ complete: 1, partial: 1 });
  });

  test('one that opens behind an ask is no part of its answer', () => {
    const stream = new Sequencing();
    stream.link();
    expect(stream.live(0)).toEqual(['0']);
    expect(stream.live(3)).toEqual([]);
    expect(stream.end()).toEqual([]);
    expect(stream.pass(100)).toEqual(['ask 1']);
    expect([1, 2].flatMap((sequence) => stream.replayed(sequence))).toEqual(['1', '2', '3']);
    expect(stream.lost).toBe(0);
  });

  test('an answer that breaks off is resumed from the first missing number', () => {
    const stream = Sequencing.flowing(0);
    stream.live(5);
    expect([1, 2].flatMap((sequence) => stream.replayed(sequence))).toEqual(['1', '2']);
    expect(stream.pass(1000)).toEqual(['drop']);
    expect(stream.pass(100)).toEqual(['ask 3']);
    expect([3, 4, 5].flatMap((sequence) => stream.replayed(sequence))).toEqual(['3', '4', '5']);
    stream.end();
    expect(stream.metrics.engineReplays).toMatchObject({ partial: 1, complete: 2, timeout: 0 });
    expect(stream.lost).toBe(0);
  });

  test('a history that comes in pieces, none with its end, heals', () => {
    const stream = new Sequencing();
    stream.link();
    const emitted: string[] = [];
    for (let piece = 0; piece < 8; piece++) {
      for (let at = 0; at < 10; at++) emitted.push(...stream.replayed(10 * piece + at));
      expect(stream.pass(1100)).toEqual(['drop', `ask ${10 * (piece + 1)}`]);
    }
    stream.end();
    expect(emitted).toEqual(Array.from({ length: 80 }, (_, sequence) => String(sequence)));
    expect(stream.lost).toBe(0);
  });

  test('nobody answers: after three asks it is lost, and for a while nobody is asked', () => {
    const stream = Sequencing.flowing(0);
    expect(stream.live(3)).toEqual(['ask 1']);
    const asks = stream.pass(20_000);
    expect(asks).toEqual(['drop', 'ask 1', 'drop', 'ask 1', 'drop', 'gap 2', '3']);
    expect(stream.metrics.engineReplays.timeout).toBe(3);
    expect(stream.live(5)).toEqual(['gap 1', '5']);
    expect(stream.pass(30_000)).toContain('ask 6');
  });

  test('a new link is asked at once, whatever came of the one before', () => {
    const stream = Sequencing.flowing(0);
    stream.live(3);
    stream.pass(20_000);
    expect(stream.relink()).toEqual(['ask 3']);
  });

  test('a late answer is thrown away', () => {
    const stream = Sequencing.flowing(0);
    stream.live(3);
    const late = stream.askId;
    stream.pass(3100);
    expect([1, 2].flatMap((sequence) => stream.replayed(sequence, 'x', late))).toEqual([]);
    expect(stream.end(late)).toEqual([]);
    expect(stream.metrics.engineReplays.late).toBe(1);
    expect(stream.replayed(1)).toEqual(['1']);
  });

  test('what finds no room is asked for again', () => {
    const stream = Sequencing.flowing(0, { holdBatches: 2 });
    for (const sequence of [2, 3, 4, 5]) stream.live(sequence);
    expect(stream.metrics.unheldBatches).toBe(2);
    expect(stream.replayed(1)).toEqual(['1', '2', '3']);
    expect([2, 3, 4].flatMap((sequence) => stream.replayed(sequence))).toEqual(['4']);
    expect(stream.end()).toEqual([]);
    expect(stream.pass(100)).toEqual(['ask 5']);
    expect(stream.replayed(5)).toEqual(['5']);
    stream.end();
    expect(stream.live(6)).toEqual(['6']);
    expect(stream.lost).toBe(0);
  });

  test('bytes are bounded as batches are', () => {
    const stream = Sequencing.flowing(0, { holdBytes: 10 });
    stream.live(2, '123456');
    stream.live(3, '123456');
    expect(stream.sequencer.heldBatches).toBe(1);
    expect(stream.metrics).toMatchObject({ unheldBatches: 1, missingBatches: 2 });
    expect(stream.replayed(1)).toEqual(['1', '2']);
    expect(stream.live(4, '123456')).toEqual([]);
    expect(stream.sequencer.heldBatches).toBe(1);
    expect(stream.finish()).toEqual(['drop', 'gap 1', '4']);
  });

  test('at the end what is held leaves, and what is missing is lost', () => {
    const stream = Sequencing.flowing(0);
    stream.live(2);
    stream.live(5);
    expect(stream.finish()).toEqual(['drop', 'gap 1', '2', 'gap 2', '5']);
  });

  test('nobody to ask: it is lost at once', () => {
    const stream = Sequencing.flowing(1, { canAsk: false });
    expect(stream.live(5)).toEqual(['gap 3', '5']);
    expect(stream.live(6)).toEqual(['6']);
    expect(stream.sequencer.deadlineMs).toBe(Number.POSITIVE_INFINITY);
  });

  test('where gaps clear, each clears before what follows, once', () => {
    const stream = Sequencing.flowing(1, { canAsk: false, clearsOnGap: true });
    expect(stream.live(5)).toEqual(['gap 3!', '5']);
    expect(stream.live(7)).toEqual(['gap 1!', '7']);
    const roomless = Sequencing.flowing(1, { clearsOnGap: true, holdBytes: 1 });
    roomless.live(5);
    expect(roomless.end()).toEqual(['gap 4!']);
    roomless.nowMs += 1000;
    roomless.live(8);
    expect(roomless.end()).toEqual(['gap 3']);
    const first = new Sequencing({ canAsk: false, clearsOnGap: true });
    expect(first.live(4)).toEqual(['gap 4', '4']);
  });
});

describe('quiet', () => {
  test('a lost last batch is looked for once', () => {
    const stream = Sequencing.flowing(1);
    expect(stream.pass(3000)).toEqual(['ask 2']);
    expect(stream.replayed(2)).toEqual(['2']);
    stream.end();
    expect(stream.pass(3000)).toEqual(['ask 3']);
    stream.end();
    expect(stream.pass(100_000)).toEqual([]);
    expect(stream.live(3)).toEqual(['3']);
    expect(stream.pass(3000)).toEqual(['ask 4']);
  });
});

describe('a restart', () => {
  test('a number that goes back clears, and the new stream is taken whole', () => {
    const stream = Sequencing.flowing(2);
    expect(stream.live(0, 'new')).toEqual(['restart!', '0']);
    expect(stream.live(1, 'new')).toEqual(['1']);
    expect(stream.metrics).toMatchObject({ engineRestarts: 1, lostBatches: 0 });
  });

  test('so does the same number again', () => {
    expect(Sequencing.flowing(2).live(2, 'new')).toEqual(['restart!', 'ask 0']);
  });

  test('so it is where the first numbers were lost: they are asked for', () => {
    const stream = Sequencing.flowing(5);
    expect(stream.live(2, 'new')).toEqual(['restart!', 'ask 0']);
    expect([0, 1].flatMap((sequence) => stream.replayed(sequence))).toEqual(['0', '1', '2']);
  });

  test('or counted where nobody can be asked', () => {
    const stream = Sequencing.flowing(5, { canAsk: false });
    expect(stream.live(2, 'new')).toEqual(['restart!', 'gap 2', '2']);
    expect(stream.live(3, 'new')).toEqual(['3']);
  });

  test('with an open hole: the ask is dropped, and the old life is lost with one clear', () => {
    const stream = Sequencing.flowing(1, { clearsOnGap: true });
    stream.live(5);
    expect(stream.live(0, 'new')).toEqual(['drop', 'gap 4', 'restart!', '0']);
    expect(stream.replayed(2)).toEqual([]);
    expect(stream.metrics).toMatchObject({ missingBatches: 4, lostBatches: 4 });
  });

  test('twice with nothing between: there is nothing to clear', () => {
    const stream = Sequencing.flowing(5);
    expect(stream.live(3, 'new')).toEqual(['restart!', 'ask 0']);
    expect(stream.live(2, 'newer').filter((action) => action.startsWith('restart'))).toEqual([
      'restart',
    ]);
  });

  test('kept, not cleared, where that is asked for', () => {
    const stream = Sequencing.flowing(5, { clearsOnRestart: false });
    expect(stream.live(0, 'new')).toEqual(['restart', '0']);
  });

  test('among live copies of what a replay brought, told by their bytes', () => {
    const stream = Sequencing.flowing(4);
    stream.live(6);
    for (const sequence of [5, 6, 7, 8]) stream.replayed(sequence);
    stream.end();
    expect(stream.live(7)).toEqual([]);
    expect(stream.live(8, 'new')).toEqual(['restart!', 'ask 0']);
  });
});

describe('a lost link', () => {
  test('to the same engine clears nothing and loses nothing', () => {
    const stream = Sequencing.flowing(3);
    expect(stream.relink()).toEqual(['ask 3']);
    expect(stream.live(6)).toEqual([]);
    expect([3, 4, 5, 6].flatMap((sequence) => stream.replayed(sequence))).toEqual(['4', '5', '6']);
    stream.end();
    expect(stream.live(7)).toEqual(['7']);
    expect(stream.metrics).toMatchObject({ engineRestarts: 0, lostBatches: 0 });
  });

  test('what was still under way on it leaves before the next one is there', () => {
    const stream = Sequencing.flowing(3);
    stream.unlink();
    expect(stream.live(4)).toEqual(['4']);
    expect(stream.link()).toEqual(['ask 3']);
    expect(stream.live(5)).toEqual([]);
    expect([3, 4].flatMap((sequence) => stream.replayed(sequence))).toEqual(['5']);
  });

  test('an engine that has passed our mark meanwhile has other bytes at it', () => {
    const stream = Sequencing.flowing(3);
    expect(stream.relink()).toEqual(['ask 3']);
    expect(stream.live(6, 'new')).toEqual([]);
    expect(stream.replayed(3, 'new')).toEqual(['drop', 'restart!', 'ask 0']);
    const whole = [0, 1, 2, 3, 4, 5, 6].flatMap((sequence) => stream.replayed(sequence, 'new'));
    expect(whole).toEqual(['0', '1', '2', '3', '4', '5', '6']);
    stream.end();
    expect(stream.live(7, 'new')).toEqual(['7']);
    expect(stream.metrics.engineRestarts).toBe(1);
  });

  test('it loses what was missing before, not what it has sent itself since', () => {
    const stream = Sequencing.flowing(3);
    stream.live(6);
    stream.relink();
    stream.live(9, 'new');
    expect(stream.replayed(3, 'new')).toEqual(['drop', 'gap 3', 'restart!', 'ask 0']);
    expect(stream.lost).toBe(3);
  });

  test('one whose numbers go back while all is in doubt has sent none of those before', () => {
    const stream = Sequencing.flowing(3);
    stream.relink();
    expect(stream.live(6)).toEqual([]);
    expect(stream.live(5, 'new')).toEqual(['drop', 'gap 3', 'restart!', 'ask 0']);
  });

  test('nor what came over a link that was lost again while it was in doubt', () => {
    const stream = Sequencing.flowing(3);
    stream.relink();
    stream.live(9, 'new');
    stream.unlink();
    expect(stream.replayed(3, 'new')).toContain('restart!');
    expect(stream.lost).toBe(0);
  });

  test('but what a replay without a link has shown of the old one', () => {
    const stream = Sequencing.flowing(3);
    stream.live(6);
    expect(stream.unlink()).toEqual(['drop', 'ask 3']);
    stream.replayed(3);
    stream.replayed(9);
    stream.end();
    expect(stream.pass(100)).toEqual(['ask 3']);
    expect(stream.replayed(3, 'new')).toEqual(['drop', 'gap 6', 'restart!', 'ask 0']);
    expect(stream.lost).toBe(6);
  });

  test('one that is not that far yet is known by its first live number', () => {
    const stream = Sequencing.flowing(9);
    stream.relink();
    expect(stream.end()).toEqual([]);
    expect(stream.live(1, 'new')).toEqual(['restart!', 'ask 0']);
  });

  test('or by what it keeps below our mark, where it is idle', () => {
    const stream = Sequencing.flowing(9);
    expect(stream.relink()).toEqual(['ask 9']);
    expect(stream.end()).toEqual([]);
    expect(stream.pass(100)).toEqual(['ask 0']);
    expect(stream.replayed(0, 'new')).toEqual(['drop', 'restart!', 'ask 0']);
    expect([0, 1].flatMap((sequence) => stream.replayed(sequence, 'new'))).toEqual(['0', '1']);
    expect(stream.lost).toBe(0);
  });

  test('so it is where a hole was open: what is held is not taken for the new one', () => {
    const stream = Sequencing.flowing(3);
    stream.live(6);
    stream.relink();
    expect(stream.end()).toEqual([]);
    expect(stream.pass(100)).toEqual(['ask 0']);
    expect(stream.replayed(0, 'new')).toEqual(['drop', 'gap 3', 'restart!', 'ask 0']);
  });

  test('one that keeps nothing at all is not judged', () => {
    const stream = Sequencing.flowing(9);
    stream.relink();
    stream.end();
    stream.pass(100);
    expect([stream.end(), stream.pass(500)]).toEqual([[], []]);
    expect(stream.live(10)).toEqual(['ask 0']);
    expect(stream.end()).toEqual(['10']);
    expect(stream.metrics.engineRestarts).toBe(0);
  });

  test('one that passes our mark behind an empty answer is asked again', () => {
    const stream = Sequencing.flowing(3);
    stream.relink();
    stream.end();
    stream.nowMs += 1000;
    expect(stream.live(4, 'new')).toEqual(['ask 0']);
    expect(stream.replayed(0, 'new')).toContain('restart!');
  });

  test('an answer that begins behind our mark is judged by its time', () => {
    for (const [seconds, actions] of [
      [5, ['gap 1', '5']],
      [0.5, ['drop', 'restart!', 'ask 0']],
    ] as const) {
      const stream = Sequencing.flowing(2);
      stream.live(3, timed(1));
      stream.relink();
      expect(stream.replayed(5, timed(seconds))).toEqual(actions);
    }
  });

  test('a number that had been replayed already comes live only from another engine', () => {
    const stream = new Sequencing();
    stream.link();
    for (let sequence = 0; sequence < 2000; sequence++) stream.replayed(sequence);
    stream.end();
    stream.relink();
    expect(stream.live(5, 'new')).toContain('restart!');
  });

  test('before anything has left, what is held shows whose numbers are answered', () => {
    const stream = new Sequencing();
    stream.link();
    stream.live(4);
    stream.live(5);
    expect(stream.unlink()).toEqual(['drop', 'ask 4']);
    expect(stream.replayed(4)).toEqual([]);
    stream.end();
    expect(stream.pass(100)).toEqual(['ask 4']);
    expect(stream.replayed(4, 'new')).toEqual(['drop', 'gap 6', 'restart', 'ask 0']);
    expect([0, 1].flatMap((sequence) => stream.replayed(sequence, 'new'))).toEqual(['0', '1']);
  });

  test('while it is lost every answer is checked anew', () => {
    const stream = Sequencing.flowing(3);
    stream.live(6);
    expect(stream.unlink()).toEqual(['drop', 'ask 3']);
    expect([3, 4].flatMap((sequence) => stream.replayed(sequence))).toEqual(['4']);
    stream.end();
    expect(stream.pass(100)).toEqual(['ask 4']);
    expect(stream.replayed(4, 'new')).toContain('restart!');
  });

  test('an answer that differs from what is held is of a new life', () => {
    const stream = Sequencing.flowing(3);
    stream.live(6);
    stream.replayed(4);
    expect(stream.replayed(6, 'new')).toEqual(['drop', 'gap 2', 'restart!', 'ask 0']);
  });

  test('nobody answers: the stream goes on unchecked', () => {
    const stream = Sequencing.flowing(3);
    stream.relink();
    expect(stream.live(4)).toEqual([]);
    expect(stream.pass(20_000)).toContain('4');
    expect(stream.live(5)).toEqual(['5']);
  });

  test('with an open hole, it is given up when nobody answers, linked or not', () => {
    const stream = Sequencing.flowing(3);
    stream.live(5);
    expect(stream.unlink()).toEqual(['drop', 'ask 3']);
    for (let tries = 0; tries < 3; tries++) {
      stream.fail();
      stream.pass(100);
    }
    expect(stream.sequencer.emittedSequence).toBe(5n);
    expect(stream.lost).toBe(1);
  });
});

test('a jump wider than any engine can make is one loss of unknown size', () => {
  const stream = Sequencing.flowing(0, { canAsk: false });
  expect(stream.live(2n ** 63n)).toEqual(['gap 1', String(2n ** 63n)]);
  expect(stream.live(1)).toEqual(['restart!', 'gap 1', '1']);
});
