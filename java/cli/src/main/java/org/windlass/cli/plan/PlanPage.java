// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.plan;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import org.windlass.checkpoint.FileFault;
import org.windlass.cli.out.WholeFile;
import org.windlass.error.InvalidArgumentException;

/**
 * Writes a page that shows plans in a browser. It is {@code plan.html} with the plans inserted as
 * JSON, and needs no other file.
 */
public final class PlanPage {
  private static final String PLACE_OF_PLANS = "@PLANS@";

  /** Start of every page, by which existing pages are recognized. */
  private static final String DOCTYPE = "<!DOCTYPE html>";

  private static final String MARK = "<meta name=\"generator\" content=\"windlass plan\">";
  private static final int MARK_WITHIN = 512;

  private PlanPage() {}

  /**
   * Returns {@code file} after following links. Throws unless the file is new, is empty, or is such
   * a page.
   */
  public static Path place(Path file) {
    try {
      if (!Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
        return file.toAbsolutePath();
      }
      Path real = file.toRealPath();
      if (Files.isDirectory(real)) {
        throw new InvalidArgumentException("--html " + file + ": is a folder; name a file");
      }
      if (!Files.isRegularFile(real)) {
        throw new InvalidArgumentException(
            "--html " + file + ": is no regular file; name one, or a new one");
      }
      if (Files.size(real) > 0 && !isPage(real)) {
        throw new InvalidArgumentException(
            "--html " + file + ": is not a page of windlass plan; name another"
                + " file, or remove it");
      }
      return real;
    } catch (NoSuchFileException dangling) {
      throw new InvalidArgumentException(
          "--html " + file + ": is a link to a file that is not there", dangling);
    } catch (IOException fault) {
      throw FileFault.writing(file, fault);
    }
  }

  private static boolean isPage(Path file) throws IOException {
    try (InputStream in = Files.newInputStream(file)) {
      String start = new String(in.readNBytes(MARK_WITHIN), StandardCharsets.ISO_8859_1);
      return start.startsWith(DOCTYPE) && start.contains(MARK);
    }
  }

  /** Writes the page of some tensors completely, or leaves the file at {@code place} unchanged. */
  public static void write(Path place, PlanRequest request, List<PlannedTensor> tensors) {
    // In a script element, only a '<' could end the JSON.
    String plans = new PageData(request).json(tensors).replace("<", "\\u003c");
    try (InputStream template = PlanPage.class.getResourceAsStream("plan.html");
        WholeFile file = WholeFile.create(place)) {
      String page = new String(template.readAllBytes(), StandardCharsets.UTF_8);
      int hole = page.indexOf(PLACE_OF_PLANS);
      file.write(page.substring(0, hole));
      file.write(plans);
      file.write(page.substring(hole + PLACE_OF_PLANS.length()));
      file.commit();
    } catch (IOException fault) {
      throw FileFault.writing(place, fault);
    }
  }
}
