/** A counter a fixed label value, as plain number fields: an increment costs one store. */
export type Counts<Label extends string> = Record<Label, number>;

/** All labels at zero, in the order given, so that every instance shares one hidden class. */
export function zeroCounts<Label extends string>(labels: readonly Label[]): Counts<Label> {
  const counts = {} as Counts<Label>;
  for (const label of labels) counts[label] = 0;
  return counts;
}

/** The sum over all labels. */
export function totalOf(counts: Counts<string>): number {
  let total = 0;
  for (const label in counts) total += counts[label] as number;
  return total;
}
