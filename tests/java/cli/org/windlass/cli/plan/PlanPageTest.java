// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.cli.Cli;

/** The page of {@code plan --html}, opened from its file in headless Chromium. */
class PlanPageTest {
  private static final long MOST_SECONDS = 90;

  @TempDir private Path folder;

  /** Of all pages: a browser that finds one starts sooner. */
  @TempDir private static Path profile;

  private Path page(Object... arguments) {
    Path page = folder.resolve("plan.html");
    List<Object> all = new ArrayList<>(List.of("plan", "--summary", "--html", page));
    all.addAll(List.of(arguments));
    Cli done = Cli.run(all.toArray());
    assertThat(done.status()).as(done.err()).isZero();
    return page;
  }

  private static Optional<Path> chromium() {
    for (String place : System.getenv().getOrDefault("PATH", "").split(File.pathSeparator)) {
      for (String name : List.of("chromium", "chromium-browser", "google-chrome")) {
        Path path = Path.of(place, name);
        if (Files.isExecutable(path)) {
          return Optional.of(path);
        }
      }
    }
    return Optional.empty();
  }

  /** The document once the page's script has run. */
  private String opened(Path page, String fragment, String... flags) throws Exception {
    Optional<Path> chromium = chromium();
    assumeTrue(chromium.isPresent(), "no chromium on the PATH: apt-get install chromium");
    Path dom = folder.resolve("dom");
    Path log = folder.resolve("log");
    List<String> command =
        new ArrayList<>(
            List.of(
                chromium.get().toString(),
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-dev-shm-usage",
                // A page of ours needs no isolation, and each process more costs as much as the page.
                "--single-process",
                "--no-zygote",
                "--disable-extensions",
                "--enable-logging=stderr",
                "--user-data-dir=" + profile));
    command.addAll(List.of(flags));
    command.addAll(List.of("--dump-dom", page.toUri() + fragment));
    Process process =
        new ProcessBuilder(command)
            .redirectOutput(dom.toFile())
            .redirectError(log.toFile())
            .start();
    try {
      if (!process.waitFor(MOST_SECONDS, TimeUnit.SECONDS)) {
        fail("chromium ran for " + MOST_SECONDS + " s: " + Files.readString(log));
      }
    } finally {
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly().waitFor();
    }
    assertThat(Files.readString(log)).doesNotContain("CONSOLE").doesNotContain("Uncaught");
    String document = Files.readString(dom);
    assertThat(document).contains("data-ready=");
    return document;
  }

  private static int count(String document, String expression) {
    Matcher matcher = Pattern.compile(expression).matcher(document);
    int count = 0;
    while (matcher.find()) {
      count++;
    }
    return count;
  }

  @Test
  void meshesTotalsAndMatrixOfATensor() throws Exception {
    Path page = page("--from", "dp=2xtp=4:P,S0", "--to", "3:S1", "--shape", "9x9", "--dtype", "f32");
    String document = opened(page, "");
    assertThat(count(document, "<span class=\"rank\"")).isEqualTo(8 + 3);
    assertThat(count(document, "<tr><td>")).isEqualTo(8 + 3);
    assertThat(document)
        .contains("<h1 id=\"title\">dp=2xtp=4:P,S0 → 3@8:S1</h1>", "mode direct, wire f32, 1 tensor<")
        .contains("<code class=\"faint\">dp=2xtp=4:P,S0</code>")
        .contains("f32[9, 9], 324 B sent, 0 B copied within a rank")
        // Nine rows over four ranks: 3, 3, 3 and none, in two terms each.
        .contains("3 different parts, each on 2 ranks, nothing on 2 ranks; dp × 2: P (terms of one value), tp × 4: S0")
        .contains("3 different parts; dim 0 × 3: S1")
        .contains("<b>324 B</b><span>read to reduce</span>")
        .contains("<b>1.00 ×</b><span>receiving imbalance</span>")
        // Rank 8 adds the other term of three rows to each part that it gets.
        .contains("<button type=\"button\" aria-pressed=\"false\">Reads to reduce</button>")
        .containsPattern("<tr><td>8</td>.*<td>108 B</td><td class=\"faint\">on ranks 4, 5, 6</td></tr>");
    Matcher canvas = Pattern.compile("<canvas[^>]* width=\"(\\d+)\"").matcher(document);
    assertThat(canvas.find() && Integer.parseInt(canvas.group(1)) > 100).isTrue();
  }

  @Test
  void pointingAtARankMarksItsPeers() throws Exception {
    Path page = page("--from", "dp=2xtp=4:P,S0", "--to", "3:S1", "--shape", "9x9", "--dtype", "f32");
    String pointing =
        """
        <script>
        document.querySelectorAll("#source .rank")[2].dispatchEvent(new MouseEvent("mouseenter"));
        </script></body>
        """;
    Files.writeString(page, Files.readString(page).replace("</body>", pointing));
    String document = opened(page, "");
    assertThat(document)
        .contains("rank 2: dp=0, tp=2\nholds [6, 9)  ×  [0, 9)\nsends 72 B\n")
        .contains("36 B of its terms are read by rank 10</div>")
        .contains("<span class=\"rank at\" data-rank=\"2\">");
    assertThat(count(document, "<span class=\"rank peer\" data-rank=\"(8|9|10)\">")).isEqualTo(3);
    assertThat(count(document, "<span class=\"rank far\"")).isEqualTo(7);
  }

  @Test
  void aListShowsTheChosenTensor() throws Exception {
    Path tensors =
        Files.writeString(
            folder.resolve("tensors.json"),
            """
            [{"name": "</script><b id='x'>&amp;", "shape": [4, 2], "dtype": "F32", "count": 3},
             {"name": "scalar", "shape": [], "dtype": "i64"},
             {"name": "empty", "shape": [0, 5, 2], "dtype": "bf16", "from": "2:S2", "to": "2@1:S1"}]
            """);
    Path page = page("--tensors", tensors, "--from", "2:S0", "--to", "2:S1");
    String largest = opened(page, "");
    assertThat(largest)
        .contains("data-ready=\"0\"")
        .contains("&lt;/script&gt;&lt;b id='x'&gt;&amp;amp; × 3")
        .doesNotContain("<b id=")
        .contains("5 tensors");
    String scalar = opened(page, "#t=1", "--blink-settings=preferredColorScheme=0");
    assertThat(scalar).contains("data-ready=\"1\"").contains("<h2 id=\"name\">scalar</h2>");
    assertThat(opened(page, "#t=2")).contains("bf16[0, 5, 2]").contains("0 different parts, nothing on 2 ranks");
  }

  @Test
  void hostsHaveWhatCrossesBetweenThem() throws Exception {
    Path links =
        Files.writeString(
            folder.resolve("links.json"), "{\"within\": {\"GBps\": 1}, \"between\": {\"GBps\": 0.001}}");
    String document =
        opened(
            page(
                "--from", "2:S0", "--to", "4@2:R", "--shape", "1024", "--dtype", "f32",
                "--ranks-per-host", "2", "--links", links),
            "");
    assertThat(document)
        .contains("<b>8.00 KiB</b><span>have to cross between 3 hosts</span>")
        .contains("<b>8.19 ms</b><span>predicted, bound by what host 0 sends</span>")
        .contains("<tr><td>host 0</td><td>host 1</td><td>4.00 KiB</td></tr>");
  }

  @Test
  void hundredsOfRanks() throws Exception {
    Path page =
        page(
            "--from", "pp=2xdp=8xtp=8:R,S0,S1", "--to", "dp=16xtp=16:R,SS0/4",
            "--shape", "4096x4096", "--dtype", "bf16");
    String document = opened(page, "");
    assertThat(count(document, "<span class=\"rank\"")).isEqualTo(128 + 256);
    assertThat(document).contains("64 different parts, each on 2 ranks");
  }

  @Test
  void theFileStandsAlone() throws Exception {
    Path page = page("--from", "2:S0", "--to", "2:S1", "--shape", "4x2", "--dtype", "f32");
    String text = Files.readString(page);
    assertThat(text).doesNotContain("@PLANS@").doesNotContainPattern("(src|href)=|@import|url\\(");
    assertThat(text.replace("http://www.w3.org/2000/svg", "")).doesNotContain("://");
    try (var files = Files.list(folder)) {
      assertThat(files).containsExactly(page);
    }
  }

  @Test
  void oneRankHasItsOwnLinksAlone() throws IOException {
    Path page =
        page("--from", "2:S0", "--to", "2:S1", "--shape", "4x2", "--dtype", "f32", "--rank", "3");
    assertThat(Files.readString(page))
        .contains("{\"rank\":3,")
        .contains("\"links\":[0,3,8,1,3,8]");
  }

  @Test
  void whatCannotBeWrittenIsRefused() throws IOException {
    Object[] plan = {"plan", "--from", "2:R", "--to", "2:R", "--shape", "4", "--dtype", "u8"};
    List<Object> gone = new ArrayList<>(List.of(plan));
    gone.addAll(List.of("--html", folder.resolve("gone/plan.html")));
    Cli done = Cli.run(gone.toArray());
    assertThat(done.status()).isEqualTo(2);
    assertThat(done.err()).contains("gone/plan.html: the folder ", "gone does not exist");
    Path taken = Files.createDirectories(folder.resolve("taken/inside")).getParent();
    List<Object> folderThere = new ArrayList<>(List.of(plan));
    folderThere.addAll(List.of("--html", taken));
    Cli intoFolder = Cli.run(folderThere.toArray());
    assertThat(intoFolder.status()).isEqualTo(2);
    assertThat(intoFolder.err()).contains("is a folder; name a file");
    try (var files = Files.list(folder)) {
      assertThat(files).containsExactly(taken);
    }
    Cli large =
        Cli.run(
            "plan", "--from", "640:S0", "--to", "640:S1", "--shape", "640x640", "--dtype", "u8",
            "--summary", "--html", folder.resolve("large.html"));
    assertThat(large.status()).isEqualTo(2);
    assertThat(large.err()).contains("more than 400000 pairs");
  }

  private Cli plan(Path html) {
    return Cli.run(
        "plan", "--from", "2:R", "--to", "2:R", "--shape", "4", "--dtype", "u8", "--html", html);
  }

  @Test
  void anEmptyNameIsRefused() {
    Cli refused = plan(Path.of(""));
    assertThat(refused.status()).isEqualTo(2);
    assertThat(refused.err()).contains("'--html'", "the path is empty");
  }

  @Test
  void onlyAPageOrAnEmptyFileIsReplaced() throws IOException {
    Path page = folder.resolve("plan.html");
    assertThat(plan(page).status()).isZero();
    String first = Files.readString(page);
    Files.writeString(page, first + "<!-- of an earlier run -->");
    assertThat(plan(page).status()).isZero();
    assertThat(page).hasContent(first);
    Path empty = Files.createFile(folder.resolve("empty"));
    assertThat(plan(empty).status()).isZero();
    assertThat(empty).hasContent(first);
    Path link = Files.createSymbolicLink(folder.resolve("link"), page);
    Files.writeString(page, first + "<!-- of an earlier run -->");
    assertThat(plan(link).status()).isZero();
    assertThat(link).isSymbolicLink();
    assertThat(page).hasContent(first);
  }

  @Test
  void whatWindlassDidNotWriteStays() throws Exception {
    Path thesis = Files.writeString(folder.resolve("thesis.html"), "<!DOCTYPE html><p>Years of work");
    Cli refused = plan(thesis);
    assertThat(refused.status()).isEqualTo(2);
    assertThat(refused.out()).isEmpty();
    assertThat(refused.err()).contains("thesis.html: is not a page of windlass plan");
    assertThat(thesis).hasContent("<!DOCTYPE html><p>Years of work");

    String list = "[{\"name\":\"<meta name=generator content=windlass plan>\",\"shape\":[4],\"dtype\":\"u8\"}]";
    Path tensors = Files.writeString(folder.resolve("tensors.json"), list);
    Cli own =
        Cli.run("plan", "--tensors", tensors, "--from", "2:R", "--to", "2:R", "--html", tensors);
    assertThat(own.status()).isEqualTo(2);
    assertThat(tensors).hasContent(list);

    Path pipe = folder.resolve("pipe");
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    assertThat(plan(pipe).err()).contains("is no regular file");
    assertThat(Files.isRegularFile(pipe)).isFalse();

    Path dangling = Files.createSymbolicLink(folder.resolve("dangling"), folder.resolve("gone"));
    assertThat(plan(dangling).err()).contains("is a link to a file that is not there");
    assertThat(dangling).isSymbolicLink();
  }
}
