// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;
import static org.windlass.cli.documents.Treatment.How.COMPARED;
import static org.windlass.cli.documents.Treatment.How.READ;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.windlass.DType;
import org.windlass.cli.Cli;
import org.windlass.manifest.CommManifest;
import org.windlass.plan.LinkSpeeds;
import org.windlass.testing.TestFile;
import org.xml.sax.InputSource;

/** The blocks of JSON and XML: read by what they are for, or held against what is printed. */
final class DataBlocks {
  /** The words of blocks of JSON, and what they stand for. */
  static final Map<String, String> WORDS =
      Map.of(
          "manifest", "a comm manifest, which commands of its page find as comm_manifest.json",
          "links", "a table of speeds, which commands of its page find as links.json",
          "rules", "what windlass reshard --rules takes",
          "report", "what windlass report --json prints",
          "error", "what --json has the command print where it fails");

  private static final DType F = DType.BF16;

  private final Sandbox sandbox;
  private final RunningJobs jobs;

  DataBlocks(Sandbox sandbox, RunningJobs jobs) {
    this.sandbox = sandbox;
    this.jobs = jobs;
  }

  Treatment json(Block block) throws Exception {
    return switch (block.word()) {
      case "manifest" -> {
        Path file = Files.writeString(sandbox.folder().resolve("comm_manifest.json"), block.text());
        assertThat(CommManifest.read(file).groups()).as("%s", block).isNotEmpty();
        yield new Treatment(READ, "CommManifest.read");
      }
      case "links" -> {
        Path file = Files.writeString(sandbox.folder().resolve("links.json"), block.text());
        assertThat(LinkSpeeds.read(file)).as("%s", block).isNotNull();
        yield new Treatment(READ, "LinkSpeeds.read");
      }
      case "rules" -> rules(block);
      case "report" -> {
        assertThat(keys(jobs.json()))
            .as("%s: keys", block)
            .isEqualTo(keys(block.text().replaceAll(",? \\.\\.\\.", "")));
        yield new Treatment(COMPARED, "windlass report --json");
      }
      case "error" -> error(block);
      default ->
          fail(
              "%s: nothing handles this word behind json; those that are known: %s. Add another to"
                  + " DataBlocks",
              block, WORDS);
    };
  }

  /** A checkpoint in which rules of the pages find what they match. */
  private Treatment rules(Block block) throws IOException {
    List<TestFile.Tensor> tensors = new ArrayList<>();
    tensors.add(Sandbox.tensor("lm_head.weight", F, 32, 16));
    tensors.add(Sandbox.tensor("norm.weight", F, 16));
    String layer = "model.layers.0.";
    for (String projection :
        List.of(
            "mlp.gate_proj",
            "mlp.up_proj",
            "self_attn.q_proj",
            "self_attn.k_proj",
            "self_attn.v_proj")) {
      // Eight heads of 128 rows.
      int rows = projection.startsWith("self_attn") ? 1024 : 32;
      tensors.add(Sandbox.tensor(layer + projection + ".weight", F, rows, 16));
    }
    for (int expert = 0; expert < 8; expert++) {
      tensors.add(Sandbox.tensor(layer + "mlp.experts." + expert + ".down_proj.weight", F, 16, 32));
    }
    Path in = sandbox.folder().resolve("model.safetensors");
    TestFile.write(in, tensors, Map.of());
    Path rules = Files.writeString(sandbox.folder().resolve("rules.json"), block.text());
    Cli done =
        Cli.run(
            "reshard",
            "--from",
            "1:R",
            "--to",
            "8@0:R",
            "--rules",
            rules,
            "--verify",
            in,
            sandbox.folder().resolve("by-rules-" + block.line()));
    assertThat(done.status()).as("%s: %s", block, done.err()).isZero();
    assertThat(done.err())
        .as("%s: warnings; give the checkpoint here what the rules match", block)
        .doesNotContain("matches nothing", "warning");
    return new Treatment(READ, "windlass reshard --rules");
  }

  private Treatment error(Block block) throws IOException {
    Path in = sandbox.folder().resolve("whole.safetensors");
    TestFile.write(in, List.of(Sandbox.tensor("w", F, 4, 4)), Map.of());
    Path out = sandbox.folder().resolve("there.safetensors");
    Cli failed = null;
    for (int run = 0; run < 2; run++) {
      failed = Cli.run("reshard", "--json", "--from", "1:R", "--to", "1@0:R", in, out);
    }
    assertThat(keys(failed.err()))
        .as("%s: keys of %s", block, failed.err())
        .isEqualTo(keys(block.text()));
    String shown =
        block.text().replaceFirst("\"hint\":(?s:.*)", "").replace("\"out: ", "\"" + out + ": ");
    assertThat(failed.err()).as("%s", block).startsWith(shown);
    return new Treatment(COMPARED, "windlass reshard --json");
  }

  /** The keys of a JSON text, behind those that they stand under. */
  private static Set<String> keys(String text) throws IOException {
    Set<String> keys = new TreeSet<>();
    try (JsonParser parser = new JsonFactory().createParser(text)) {
      for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
        if (token == JsonToken.FIELD_NAME) {
          keys.add(parser.getParsingContext().pathAsPointer().toString().replaceAll("/\\d+", ""));
        }
      }
    }
    return keys;
  }

  /**
   * A whole pom has the coordinates and the version of Java of this build, and the consumer's
   * dependencies.
   */
  Treatment xml(Block block) throws Exception {
    Document shown = document(new InputSource(new StringReader(block.text())));
    assertThat(shown.getDocumentElement().getTagName())
        .as("%s: a whole pom.xml", block)
        .isEqualTo("project");
    Document root = document(new InputSource(Pages.ROOT.resolve("pom.xml").toUri().toString()));
    Document consumer =
        document(new InputSource(Pages.ROOT.resolve("tests/consumer/pom.xml").toUri().toString()));
    String version = child(root.getDocumentElement(), "version");
    List<List<String>> dependencies = dependencies(shown);
    assertThat(dependencies).as("%s: dependencies", block).isNotEmpty();
    assertThat(
            dependencies(consumer).stream()
                .map(
                    each ->
                        each.stream()
                            .map(part -> part.replace("${windlass.version}", version))
                            .toList()))
        .as("%s: what tests/consumer depends on", block)
        .containsAll(dependencies);
    String java = text(root, "maven.compiler.release");
    for (String property : List.of("maven.compiler.source", "maven.compiler.target")) {
      assertThat(text(shown, property)).as("%s: %s", block, property).isEqualTo(java);
    }
    return new Treatment(READ, "as tests/consumer/pom.xml, which suite consumer builds by");
  }

  /** Dependencies of Gradle: each is one of the bill of versions, in this version or without one. */
  Treatment gradle(Block block) throws Exception {
    Document bom =
        document(new InputSource(Pages.ROOT.resolve("java/bom/pom.xml").toUri().toString()));
    String version = child(document(
        new InputSource(Pages.ROOT.resolve("pom.xml").toUri().toString())).getDocumentElement(),
        "version");
    List<String> known = new ArrayList<>(List.of("windlass-bom:"));
    for (List<String> each : dependencies(bom)) {
      known.add(each.get(1) + ":" + each.get(3));
    }
    var named =
        Pattern.compile("\"org\\.windlass:([a-z-]+)(?::([0-9.]*))?(?::([a-z0-9_-]+))?\"")
            .matcher(block.text());
    int count = 0;
    for (; named.find(); count++) {
      String classifier = named.group(3) == null ? "" : named.group(3);
      assertThat(known).as("%s", block).contains(named.group(1) + ":" + classifier);
      assertThat(named.group(2)).as("%s", block).isIn(null, "", version);
    }
    assertThat(count).as("%s: dependencies", block).isPositive();
    return new Treatment(READ, "as java/bom/pom.xml has them");
  }

  private static Document document(InputSource source) throws Exception {
    return DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(source);
  }

  private static List<List<String>> dependencies(Document pom) {
    List<List<String>> all = new ArrayList<>();
    var nodes = pom.getElementsByTagName("dependency");
    for (int i = 0; i < nodes.getLength(); i++) {
      Element each = (Element) nodes.item(i);
      all.add(
          List.of(
              child(each, "groupId"),
              child(each, "artifactId"),
              child(each, "version"),
              child(each, "classifier"),
              child(each, "scope")));
    }
    return all;
  }

  private static String child(Element parent, String name) {
    for (var node = parent.getFirstChild(); node != null; node = node.getNextSibling()) {
      if (node.getNodeName().equals(name)) {
        return node.getTextContent().strip();
      }
    }
    return "";
  }

  private static String text(Document document, String name) {
    var found = document.getElementsByTagName(name);
    return found.getLength() == 0 ? "" : found.item(0).getTextContent().strip();
  }
}
