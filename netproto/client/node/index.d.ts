import type { RedisClientOptions } from "redis";

/** What node-redis sends as bytes. A string is UTF-8. */
export type Bytes = string | Uint8Array;

/**
 * A test of a tag, such as "class<=standard" or ["class", "<=", "standard"]. Operators: = != < <= >
 * >=
 */
export type Filter = string | [tag: string, op: "=" | "!=" | "<" | "<=" | ">" | ">=", value: Bytes];

export interface PushOptions {
  /**
   * 1 is the best priority, 128 the default. Packets of one key are a group, and may be a share.
   */
  priority?: number; key?: Bytes; tags?: Record<string, Bytes>; producer?: string; meta?: Bytes;
  /**
   * How long it lasts; how long, or until when, it waits before it is delivered; how long its
   * claims last.
   */
  ttl?: number; delay?: number; at?: Date; lease?: number;
  /**
   * How long to wait for room: 0 has no end. The abort of signal ends the wait. A silent network is
   * noticed after ten minutes.
   */
  block?: number; signal?: AbortSignal;
}
/** Adds nothing while a packet with this id waits or is claimed; or for the time of window. */
export interface UniqueOptions extends PushOptions { unique?: Bytes; window?: number; untilClaim?: boolean; replace?: boolean }
/** Which packets: those for which all filters are true, or matchAny of them; those of one share. */
export interface Selection { filters?: Filter[]; matchAny?: number; share?: Bytes }
export interface BulkOptions extends Selection { state?: State; count?: number; to?: string; older?: number; as?: string; dryRun?: boolean }
/** From which further queues, and whether the newest; who claims, for how long. */
export interface FromOptions extends Selection { or?: string[]; newest?: boolean; lease?: number; as?: string }
/**
 * How many, up to 1,000, or all of a key. How long to wait for one: 0 has no end; and then for
 * count.
 */
export interface TakeOptions extends FromOptions { count?: number; group?: boolean; block?: number; fill?: number; signal?: AbortSignal }
/**
 * How many handlers run at a time: 1 unless given. After the abort of signal they have drain,
 * 10,000, to end. A burst ends when there is nothing to claim and its handlers have ended.
 */
export interface WorkOptions extends FromOptions { concurrency?: number; signal?: AbortSignal; drain?: number; burst?: boolean }

export type State = "ready" | "delayed" | "claimed" | "dead" | "done" | "damaged" | "expired" | "cancelled";

/** A packet. Fields that do not apply are undefined. */
export class Packet {
  private constructor();
  readonly id: string; readonly queue: string; readonly payload: Buffer; readonly priority: number; readonly key?: Buffer;
  readonly tags?: Record<string, string>; readonly producer?: string; readonly lease?: number; readonly meta?: Buffer;
  readonly unique?: string; readonly enqueued: Date; readonly expires?: Date; readonly notBefore?: Date; readonly state?: State;
  /**
   * How many times it was claimed; the token of its claim, which rises over the whole store; who
   * claimed it last.
   */
  readonly attempt: number; readonly token: number; leaseEnd?: Date; readonly consumer?: string; readonly cancelled?: boolean;
  /**
   * Why it came back or died, what that says before its first colon, where it died, and how far the
   * work is.
   */
  readonly reason?: string; readonly errorClass?: string; readonly died?: Date; readonly origin?: string;
  readonly percent?: number; readonly percentText?: string;
  /** Of show alone: how many come before it, and why it is not delivered now. */
  readonly firstClaim?: Date; readonly lastClaim?: Date; readonly behind?: number; readonly why?: string;
  /**
   * May be set before the answer: for rates the claim is as so many takes. Answered: ack or nack
   * was taken.
   */
  cost?: number; readonly answered: boolean;
  /** Ends the packet. StaleError: the claim had ended, or the first of two requests has arrived. */
  ack(): Promise<void>;
  /**
   * Returns the packet, with anything as the reason; a Verdict says more. It is tried again later.
   */
  nack(why?: unknown): Promise<State>;
  /** Has the lease end so many milliseconds from now. */
  extend(ms: number): Promise<void>;
  /** Tells how far the work is, in percent and words. */
  progress(percent: number, words?: string): Promise<void>;
}

/**
 * The signal aborts when the lease is lost, with the StaleError, the CancelledError or the
 * ShutdownError.
 */
export type Handler = (packet: Packet, how: { signal: AbortSignal }) => unknown;
export type BatchHandler = (packets: Packet[], how: { signal: AbortSignal }) => unknown;

export interface Stats {
  ready: number; hidden: number; delayed: number; claimed: number; dead: number; done: number; damaged: number; bytes: number;
  pushed: number; popped: number; acked: number; nacked: number; expired: number; died: number; dropped: number; cancelled: number;
  pausedIn: boolean; pausedOut: boolean; full: boolean; closed: boolean; overdue: boolean; held: boolean; atLimit: boolean;
  sharesAtLimit: number; sharesNotDue: number; packetsBehind: number; diedElsewhere: number; age?: number; producer?: string; consumer?: string;
  bands: { from: number; to: number; packets: number }[];
}
export interface ShareOptions { weight?: number; maxClaimed?: number; rate?: string; rest?: number }
export interface Share extends Omit<ShareOptions, "rest"> {
  name: string; ready: number; claimed: number; age?: number; rests?: number; why?: string; until?: Date;
}
export interface Consumer {
  name: string; seen?: Date; claimed: number; since?: Date; ids?: string[]; waiting?: { queues: string[]; filter: string[] }[];
}
export interface Producer { name: string; seen: Date; pushed: number; connection?: string; user?: string }

/**
 * node-redis's options, and what gets the messages of workers: console.warn unless given. The cause
 * is what a handler has thrown, but for verdicts.
 */
export type ClientOptions = RedisClientOptions & { log?: (message: string, cause?: unknown) => void };

/** A client of one server. It connects when it is first used. Times are milliseconds. */
export class Client {
  constructor(options?: string | ClientOptions);
  /** Ends all connections at once. */
  close(): void;
  /** Sends any other command, once. Texts of the reply are Buffers. */
  command(...args: Bytes[]): Promise<unknown>;

  /**
   * Adds a packet, and resolves with its id when it is on the server's disk. UnknownError: it may
   * be there.
   */
  push(queue: string, payload: Bytes, options?: UniqueOptions): Promise<string>;
  /**
   * Push with unique that tells what became of it: new, replaced, or the state of the packet that
   * has the id.
   */
  pushTold(queue: string, payload: Bytes, options: UniqueOptions): Promise<{ id: string; told: "new" | "replaced" | "gone" | State }>;
  /** Adds up to 1,000 packets, all or none. */
  pushBatch(queue: string, payloads: Bytes[], options?: PushOptions): Promise<string[]>;
  /**
   * Takes packets for good. Those in an answer that gets lost are lost: claim does not lose them.
   */
  pop(queue: string, options?: Omit<TakeOptions, "lease" | "as">): Promise<Packet[]>;
  /** Takes packets for the time of a lease: ack or nack each. */
  claim(queue: string, options?: TakeOptions): Promise<Packet[]>;
  /** Claims packets one by one until the queue is drained. Their leases are not renewed. */
  claims(queue: string, options?: Omit<TakeOptions, "block">): AsyncGenerator<Packet, void>;
  /** A packet that was claimed before. */
  claimed(queue: string, id: string, token: number): Packet;

  /** Has handlers work on packets, until the queue is drained, signal aborts, or shutdown. */
  consume(queue: string, handler: Handler, options?: WorkOptions): Promise<void>;
  /**
   * Consume for up to size packets at once, 1 to 1,000: once there is one it waits up to fill for
   * more.
   */
  consumeBatch(queue: string, size: number, fill: number, handler: BatchHandler, options?: WorkOptions): Promise<void>;
  /** Consume in a program of its own: SIGTERM and SIGINT end it by shutdown. */
  work(queue: string, handler: Handler, options?: WorkOptions): Promise<void>;
  /**
   * Ends every consume: handlers have drain to end, or what their consume says. Resolves with how
   * many packets were given back.
   */
  shutdown(drain?: number): Promise<number>;

  /** The names of the queues that match a pattern such as mail.*; all unless given. */
  queues(pattern?: string): Promise<string[]>;
  len(queue: string): Promise<number>; peek(queue: string, n?: number): Promise<Packet[]>;
  show(queue: string, id: string): Promise<Packet>; list(queue: string, options?: BulkOptions): AsyncGenerator<Packet, void>;
  /** These resolve with how many packets they changed, or with dryRun would change. */
  purge(queue: string, options?: BulkOptions): Promise<number>; harvest(queue: string, options?: BulkOptions): Promise<number>;
  redrive(queue: string, options?: BulkOptions): Promise<number>; redrivePacket(queue: string, id: string): Promise<void>;
  moveAll(queue: string, to: string, options?: BulkOptions): Promise<number>;
  move(queue: string, to: string, ...ids: string[]): Promise<number>; delete(queue: string, ...ids: string[]): Promise<number>;
  /**
   * Has packets not be worked on: of each, gone, told (it is claimed) or undefined (there is none).
   */
  cancel(queue: string, ...ids: string[]): Promise<("gone" | "told" | undefined)[]>;
  setPriority(queue: string, id: string, priority: number): Promise<void>;
  /** Has a packet that waits be ready at a moment, now unless given; or in some milliseconds. */
  reschedule(queue: string, id: string, at?: Date): Promise<void>; rescheduleIn(queue: string, id: string, ms: number): Promise<void>;
  /** Ends a queue with its packets; or has it take no more, for ever: false if it was so before. */
  drop(queue: string): Promise<void>; closeQueue(queue: string): Promise<boolean>;
  /**
   * The settings, by their names in COMMANDS.md; enum has the order of a tag's values. Times are
   * milliseconds; set takes texts such as 30s, with ms, s, m, h or d, too.
   */
  get(queue: string): Promise<Record<string, string | Record<string, string[]>>>;
  set(queue: string, settings: { [name: string]: unknown; enum?: Record<string, string[]> }, options?: { force?: boolean }): Promise<void>;
  /** Has a queue give nothing, or with pushes take none, until a moment or until resume. */
  pause(queue: string, options?: { until?: Date; pushes?: boolean }): Promise<void>;
  resume(queue: string, options?: { pushes?: boolean }): Promise<void>;
  stats(queue: string): Promise<Stats>; consumers(queue: string): Promise<Consumer[]>; producers(queue: string): Promise<Producer[]>;
  /** The shares of a queue, first those with something of their own. */
  shares(queue: string): Promise<Share[]>; resetShare(queue: string, share: string): Promise<void>;
  setShare(queue: string, share: string, options: ShareOptions): Promise<void>;
}

/** What a handler throws, or gives to nack, to say what becomes of its packet. */
export abstract class Verdict extends Error { private words: never }
/** It is dead, and not tried again. */
export class Dead extends Verdict { constructor(why?: unknown) }
/** It is tried again after so many milliseconds. */
export class RetryIn extends Verdict { constructor(ms: number, why?: unknown) }
/** It is delivered again then, and the claim was no attempt. */
export class Uncounted extends Verdict { constructor(ms: number, why?: unknown) }
export class Snooze extends Uncounted { constructor(ms: number) }
/** Its share, or its queue, rests so long, 1 s to a day, as after HTTP 429; it was no attempt. */
export class Hold extends Verdict { constructor(ms: number, why?: unknown) }

/** What every call rejects with: its class and its code say why. The README has a table. */
export class HoldfastError<Code extends string = string> extends Error { protected constructor(); readonly code: Code }
export class StaleError extends HoldfastError<"STALE"> {} export class CancelledError extends HoldfastError<"CANCELLED"> {}
export class NoQueueError extends HoldfastError<"NOQUEUE"> {} export class FullError extends HoldfastError<"FULL"> {}
export class PausedError extends HoldfastError<"PAUSED"> {} export class ClosedError extends HoldfastError<"CLOSED"> {}
export class InUseError extends HoldfastError<"INUSE"> {} export class NoSpaceError extends HoldfastError<"NOSPACE"> {}
export class WrongTypeError extends HoldfastError<"WRONGTYPE"> {} export class DeniedError extends HoldfastError<"DENIED"> {}
export class ForbiddenError extends HoldfastError<"FORBIDDEN"> {} export class TooLargeError extends HoldfastError<"TOOLARGE"> {}
export class TooManyError extends HoldfastError<"TOOMANY"> {} export class InvalidError extends HoldfastError<"INVALID"> {}
export class NoPacketError extends HoldfastError<"NOPACKET"> {} export class ConnectionError extends HoldfastError<"CONNECTION"> {}
export class UnknownError extends HoldfastError<"UNKNOWN"> {} export class ShutdownError extends HoldfastError<"SHUTDOWN"> {}
