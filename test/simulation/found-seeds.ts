/**
 * Seeds that have found a defect, each with what it was: they are played every time. A change of what is
 * drawn makes other histories of them, so each has a unit test as well.
 */
export const FOUND: readonly (readonly [seed: number, defect: string])[] = [
  [4, 'what a new life had sent live counted as lost with the old one'],
  [142, 'the same, in another history'],
  [53, 'a restarted engine that is idle below our mark was taken for the old one'],
  [2256, 'a loss left out where numbers went back while all was in doubt'],
  [533, 'what a new life had sent on a link that was lost again counted as lost with the old one'],
  [1216, 'a loss left out that a replay without a link had shown'],
  [912, 'a dump that was being built lost its place to one made at once, and most of its blocks'],
  [10072, 'a late answer beside which nothing waited just then: more passed than a router keeps'],
];
