// SPDX-License-Identifier: Apache-2.0
package org.windlass.spark;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Tag;

/** Executors that count as a host each, and reach one another over loopback. */
@Tag("hosts")
class ExecutorsOfSeveralHostsTest extends ExecutorCases {
  @Override
  boolean isEachAHost() {
    return true;
  }

  /** Spark gives all executors one environment; what they take for java names each a host. */
  @Override
  void tell(SparkConf conf) throws IOException {
    Path natives = Path.of(System.getProperty("org.windlass.library.path"));
    assumeTrue(
        Files.exists(natives.resolve("libwindlass-ucx.so")),
        "this build found no headers of UCX: Debian's libucx-dev");
    Path home = folder.resolve("java");
    Path java = Files.createDirectories(home.resolve("bin")).resolve("java");
    Files.writeString(
        java,
        String.join(
            "\n",
            "#!/bin/sh",
            "for word; do",
            "  [ \"$last\" != --executor-id ] || export WINDLASS_HOST=executor-$word",
            "  last=$word",
            "done",
            "exec '" + System.getProperty("java.home") + "/bin/java' \"$@\"",
            ""));
    Files.setPosixFilePermissions(java, PosixFilePermissions.fromString("rwx------"));
    conf.set("spark.executorEnv.JAVA_HOME", home.toString());
  }
}
