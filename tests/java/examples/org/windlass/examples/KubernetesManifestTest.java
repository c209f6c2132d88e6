// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.windlass.examples.KubernetesManifest.at;
import static org.windlass.examples.KubernetesManifest.number;
import static org.windlass.examples.KubernetesManifest.text;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The manifest says what Kubernetes reads, of itself the same everywhere, and what ranks read. */
class KubernetesManifestTest {
  private static final Path ROOT = Path.of(System.getProperty("windlass.root"));

  private KubernetesManifest manifest;

  @BeforeEach
  void read() throws IOException {
    manifest = KubernetesManifest.read();
  }

  @ParameterizedTest
  @CsvSource({
    "completionMode:, completionmode:",
    "clusterIP:, clusterIp:",
    "endPort:, lastPort:",
    "secretKeyRef:, secretRef:",
    "fieldPath:, path:",
    "policyTypes:, policies:",
    "maxSkew:, skew:",
    "subdomain:, restartPolicy:",
    "completions: 4, completions: four",
  })
  void aWordThatKubernetesDoesNotKnowIsRefused(String word, String wrong) throws IOException {
    String text = Files.readString(KubernetesManifest.FILE);
    assertThat(text).contains(word);
    assertThatThrownBy(() -> KubernetesManifest.of(text.replace(word, wrong)))
        .isInstanceOfAny(RuntimeException.class);
  }

  @Test
  void podsAreThereAllAtOnceAndHaveNames() {
    JsonElement spec = at(manifest.job(), "spec");
    assertThat(text(spec, "completionMode")).isEqualTo("Indexed");
    int ranks = number(spec, "completions");
    assertThat(number(spec, "parallelism")).isEqualTo(ranks);
    assertThat(manifest.value("WINDLASS_WORLD_SIZE")).isEqualTo("" + ranks);
    assertThat(number(spec, "backoffLimit") % ranks).as("starts, of all ranks").isZero();

    String service = text(manifest.service(), "metadata", "name");
    assertThat(text(manifest.service(), "spec", "clusterIP")).isEqualTo("None");
    assertThat(at(manifest.service(), "spec", "publishNotReadyAddresses").getAsBoolean()).isTrue();
    assertThat(text(manifest.pod(), "subdomain")).isEqualTo(service);
    // The pod of an index is called by its job and that; by the subdomain within the namespace.
    String first = text(manifest.job(), "metadata", "name") + "-0";
    assertThat(manifest.rendezvous()[0]).isEqualTo(first + "." + service);
    JsonElement rank = manifest.variables().get("WINDLASS_RANK");
    assertThat(text(rank, "valueFrom", "fieldRef", "fieldPath"))
        .isEqualTo("metadata.annotations['batch.kubernetes.io/job-completion-index']");
  }

  @Test
  void labelsAndPortsAreTheSameEverywhere() {
    JsonElement labels = at(manifest.job(), "spec", "template", "metadata", "labels");
    assertThat(at(manifest.service(), "spec", "selector")).isEqualTo(labels);
    JsonElement policy = at(manifest.policy(), "spec");
    assertThat(at(policy, "podSelector", "matchLabels")).isEqualTo(labels);
    assertThat(at(policy, "ingress", 0, "from", 0, "podSelector", "matchLabels")).isEqualTo(labels);
    assertThat(at(manifest.pod(), "topologySpreadConstraints", 0, "labelSelector", "matchLabels"))
        .isEqualTo(labels);

    int port = Integer.parseInt(manifest.rendezvous()[1]);
    assertThat(number(manifest.service(), "spec", "ports", 0, "port")).isEqualTo(port);
    assertThat(number(manifest.container(), "ports", 0, "containerPort")).isEqualTo(port);
    JsonElement open = at(policy, "ingress", 0, "ports");
    assertThat(open.getAsJsonArray()).hasSize(2);
    assertThat(number(open, 0, "port")).isEqualTo(port);
    assertThat(number(open, 1, "port") + "-" + number(open, 1, "endPort"))
        .isEqualTo(manifest.value("WINDLASS_UCX_PORT_RANGE"));
  }

  @Test
  void theTokenComesFromTheSecretThatTheFileSaysHowToMake() throws IOException {
    JsonObject token = manifest.variables().get("WINDLASS_TOKEN");
    String secret = text(token, "valueFrom", "secretKeyRef", "name");
    String key = text(token, "valueFrom", "secretKeyRef", "key");
    assertThat(Files.readString(KubernetesManifest.FILE))
        .contains(
            "kubectl create secret generic " + secret
                + " --from-literal=" + key + "=$(openssl rand -hex 32)");
  }

  /** Names that stand in texts of the library, among other names or by themselves. */
  @Test
  void theLibraryReadsEachVariable() throws IOException {
    Set<String> unread = new TreeSet<>(manifest.variables().keySet());
    for (String sources : new String[] {"java/core/src/main/java", "native"}) {
      try (Stream<Path> files = Files.walk(ROOT.resolve(sources))) {
        for (Path file : files.filter(each -> each.toString().matches(".*\\.(java|cpp|h)")).toList()) {
          String text = Files.readString(file);
          unread.removeIf(
              name -> {
                String others = "\"([A-Z_]+ )*" + name + "( [A-Z_]+)*\"";
                return Pattern.compile(others).matcher(text).find();
              });
        }
      }
    }
    assertThat(unread).isEmpty();
    assertThat(manifest.variables().keySet()).allMatch(name -> name.startsWith("WINDLASS_"));
  }

  @Test
  void whatRunsIsAnExample() throws Exception {
    String program = manifest.command().get(manifest.command().size() - 1);
    assertThat(Class.forName(program).getMethod("main", String[].class)).isNotNull();
  }
}
