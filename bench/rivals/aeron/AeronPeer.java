import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.BackoffIdleStrategy;

/**
 * One of two processes that measure Aeron over IPC: {@code first} hosts the media driver, sends and
 * asks; {@code second} receives and answers. Commands come by standard input, one a line; answers
 * go to standard output. At the end of the input, or if a command takes 30 s, the process ends.
 */
public final class AeronPeer {
    /** With shorter terms the driver's thread must run more often than two busy cores let it. */
    private static final String IPC = "aeron:ipc?term-length=64m";
    private static final long PARK_NS_MIN = 1_000;
    private static final long PARK_NS_MAX = 100_000;
    private static final int STREAM = 1;
    private static final int PING = 2;
    private static final int PONG = 3;
    /** Bytes of the other peers' small message. */
    private static final int TRIP_BYTES = 64;
    private static final int FRAGMENTS = 256;
    private static final long LIMIT_NS = TimeUnit.SECONDS.toNanos(30);

    private static volatile long commandSince = Long.MAX_VALUE;

    private final BufferClaim claim = new BufferClaim();
    private final Aeron aeron;
    private long sum;
    private long got;
    private long last;

    private AeronPeer(final Aeron aeron) {
        this.aeron = aeron;
    }

    public static void main(final String[] args) throws IOException {
        final Thread watchdog = new Thread(AeronPeer::endWhatHangs);
        watchdog.setDaemon(true);
        watchdog.start();
        final boolean first = args[0].equals("first");
        // Shared and backing off: two threads spin already, on as few as two cores.
        final MediaDriver driver = !first ? null : MediaDriver.launch(new MediaDriver.Context()
            .aeronDirectoryName(args[1])
            .threadingMode(ThreadingMode.SHARED)
            .sharedIdleStrategy(new BackoffIdleStrategy(10, 5, PARK_NS_MIN, PARK_NS_MAX))
            .termBufferSparseFile(false)
            .dirDeleteOnStart(true)
            .dirDeleteOnShutdown(true));
        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[1]))) {
            new AeronPeer(aeron).run(first);
        } finally {
            if (driver != null) {
                driver.close();
            }
        }
    }

    private static void endWhatHangs() {
        try {
            while (System.nanoTime() - LIMIT_NS < commandSince) {
                Thread.sleep(500);
            }
        } catch (final InterruptedException ended) {
            return;
        }
        Runtime.getRuntime().halt(3);
    }

    private void run(final boolean first) throws IOException {
        final BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        // The harness pins this thread, and no other one of the process.
        say("tid " + Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName());
        final ExclusivePublication to = aeron.addExclusivePublication(IPC, first ? PING : PONG);
        final ExclusivePublication stream = first
            ? aeron.addExclusivePublication(IPC, STREAM) : null;
        try (Subscription from = aeron.addSubscription(IPC, first ? PONG : PING);
            Subscription messages = first ? null : aeron.addSubscription(IPC, STREAM)) {
            for (String line; (line = commands.readLine()) != null; commandSince = Long.MAX_VALUE) {
                commandSince = System.nanoTime();
                final String[] words = line.split(" ");
                final long count = Long.parseLong(words[1]);
                switch (words[0]) {
                    case "send" -> say("" + send(stream, count, Integer.parseInt(words[2])));
                    case "receive" -> receive(messages, count);
                    case "trip" -> say("" + trip(to, from, count));
                    case "echo" -> echo(to, from, count);
                    default -> throw new IllegalArgumentException(line);
                }
            }
        }
    }

    private static void say(final String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static void awaitPeer(final Publication publication) {
        while (!publication.isConnected()) {
            Thread.onSpinWait();
        }
    }

    /** Numbers 1 to count in the last word of each message; the time of the first. */
    private long send(final ExclusivePublication to, final long count, final int bytes) {
        awaitPeer(to);
        final long start = System.nanoTime();
        for (long i = 1; i <= count; i++) {
            put(to, i, bytes);
        }
        return start;
    }

    private void put(final ExclusivePublication to, final long value, final int bytes) {
        while (to.tryClaim(bytes, claim) <= 0) {
            Thread.onSpinWait();
        }
        final int at = claim.offset();
        for (int word = 0; word < bytes; word += Long.BYTES) {
            claim.buffer().putLong(at + word, value);
        }
        claim.commit();
    }

    /** The time of the last one, and the sum of all. */
    private void receive(final Subscription from, final long count) {
        got = 0;
        sum = 0;
        final FragmentHandler handler = (buffer, offset, length, header) -> {
            sum += buffer.getLong(offset + length - Long.BYTES);
            got++;
        };
        say("ready");
        while (got < count) {
            if (from.poll(handler, FRAGMENTS) == 0) {
                Thread.onSpinWait();
            }
        }
        say(System.nanoTime() + " " + sum);
    }

    /** Half a round trip, median in ns; the first tenth is warm-up. */
    private double trip(
        final ExclusivePublication to, final Subscription from, final long count) {
        awaitPeer(to);
        final FragmentHandler handler = (buffer, offset, length, header) ->
            last = buffer.getLong(offset + length - Long.BYTES);
        final long[] times = new long[(int)count];
        last = 0;
        for (int i = 0; i < count; i++) {
            final long start = System.nanoTime();
            put(to, i + 1, TRIP_BYTES);
            while (last != i + 1) {
                from.poll(handler, 1);
            }
            times[i] = System.nanoTime() - start;
        }
        final long[] kept = Arrays.copyOfRange(times, times.length / 10, times.length);
        Arrays.sort(kept);
        return kept[kept.length / 2] / 2.0;
    }

    private void echo(final ExclusivePublication to, final Subscription from, final long count) {
        got = 0;
        final FragmentHandler handler = (buffer, offset, length, header) -> {
            put(to, buffer.getLong(offset + length - Long.BYTES), TRIP_BYTES);
            got++;
        };
        say("ready");
        while (got < count) {
            from.poll(handler, 1);
        }
    }
}
