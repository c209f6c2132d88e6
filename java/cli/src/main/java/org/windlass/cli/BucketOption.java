// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Command-line option for the bytes that a thread collects before it writes or sends them. */
final class BucketOption {
  @Option(
      names = "--bucket-bytes",
      paramLabel = "B",
      description = "Bytes that staged mode collects before it sends, such as 4M.")
  private @Nullable String bucketBytes;

  OptionalLong bytes() {
    return LayoutOptions.bytes("--bucket-bytes", bucketBytes);
  }
}
