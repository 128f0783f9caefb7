import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import kafka.Kafka;
import kafka.tools.StorageTool;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.errors.TopicExistsException;

/**
 * One KRaft node: formats its storage if that is new, runs Kafka, and creates the topics. All in one process, because
 * a JVM for each of the three steps would double the time until a test can begin.
 *
 * <p>Arguments: properties file, cluster id, file to create when everything answers, port, number of brokers,
 * partitions per topic, then the topics, each {@code name} or {@code name:compact}.
 */
public final class Broker {
    private static final long PAUSE_MS = 20;

    private final String clusterId;
    private final Path ready;
    private final int port;
    private final int brokers;
    private final int partitions;
    private final List<String> topics;

    private Broker(String[] args) {
        clusterId = args[1];
        ready = Path.of(args[2]);
        port = Integer.parseInt(args[3]);
        brokers = Integer.parseInt(args[4]);
        partitions = Integer.parseInt(args[5]);
        topics = Arrays.asList(args).subList(6, args.length);
    }

    public static void main(String[] args) {
        String[] format = {"format", "--ignore-formatted", "--cluster-id", args[1], "--config", args[0]};
        if (StorageTool.execute(format, System.out) != 0) {
            System.exit(1);
        }
        Thread preparing = new Thread(new Broker(args)::prepare, "prepare");
        preparing.setDaemon(true);
        preparing.start();
        Kafka.main(new String[] {args[0]});
    }

    private void prepare() {
        try {
            while (!listening()) {
                Thread.sleep(PAUSE_MS);
            }
            try (Admin admin = Admin.create(Map.of("bootstrap.servers", "127.0.0.1:" + port))) {
                while (!ours(admin)) {
                    Thread.sleep(PAUSE_MS);
                }
                create(admin);
                while (!complete(admin)) {
                    Thread.sleep(PAUSE_MS);
                }
            }
            Files.createFile(ready);
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    private boolean listening() {
        try (Socket ignored = new Socket(InetAddress.getLoopbackAddress(), port)) {
            return true;
        } catch (java.io.IOException e) {
            return false;
        }
    }

    /** Whether all nodes are there. Another broker may have bound a port that this one is about to bind. */
    private boolean ours(Admin admin) throws Exception {
        var cluster = admin.describeCluster();
        return cluster.clusterId().get().equals(clusterId) && cluster.nodes().get().size() == brokers;
    }

    /** Every node of a cluster tries, and after a restart all topics are there. */
    private void create(Admin admin) throws Exception {
        for (var creation : admin.createTopics(topics.stream().map(this::topic).toList()).values().values()) {
            try {
                creation.get();
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof TopicExistsException)) {
                    throw e;
                }
            }
        }
    }

    private NewTopic topic(String nameAndPolicy) {
        String policy = nameAndPolicy.endsWith(":compact") ? "compact" : "delete";
        return new NewTopic(name(nameAndPolicy), partitions, (short) Math.min(3, brokers))
                .configs(Map.of("cleanup.policy", policy));
    }

    /** Whether each partition has a leader and all its replicas, so that the first write meets no election. */
    private boolean complete(Admin admin) throws Exception {
        try {
            var names = topics.stream().map(Broker::name).toList();
            return admin.describeTopics(names).allTopicNames().get().values().stream().allMatch(Broker::led);
        } catch (ExecutionException e) {
            // The topics reach this node's metadata a moment after the controller has created them.
            return false;
        }
    }

    private static boolean led(TopicDescription topic) {
        return topic.partitions().stream()
                .allMatch(p -> p.leader() != null && !p.leader().isEmpty() && p.isr().size() == p.replicas().size());
    }

    private static String name(String nameAndPolicy) {
        return nameAndPolicy.split(":")[0];
    }
}
