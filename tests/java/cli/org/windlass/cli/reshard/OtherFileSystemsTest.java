// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.DType;
import org.windlass.cli.ChildCommand;
import org.windlass.testing.TestFile;

/** Reshards on file systems that do less than a local disk; a preloaded library stands in for them. */
class OtherFileSystemsTest {
  /** A file that this process has open is renamed when it is deleted, and stays: as on NFS. */
  private static final String NFS =
      """
      #include <dirent.h>
      #include <dlfcn.h>
      #include <stdio.h>
      #include <string>
      #include <sys/stat.h>
      static bool isOpen(const struct stat& of) {
        bool is = false;
        DIR* all = opendir("/proc/self/fd");
        while (const dirent* each = readdir(all)) {
          struct stat one;
          const std::string path = std::string("/proc/self/fd/") + each->d_name;
          is |= stat(path.c_str(), &one) == 0 && one.st_dev == of.st_dev && one.st_ino == of.st_ino;
        }
        closedir(all);
        return is;
      }
      extern "C" int unlink(const char* path) {
        struct stat about;
        if (lstat(path, &about) == 0 && S_ISREG(about.st_mode) && isOpen(about)) {
          const std::string whole = path;
          const std::string folder = whole.substr(0, whole.rfind('/') + 1);
          return rename(path, (folder + ".nfs" + std::to_string(about.st_ino)).c_str());
        }
        return reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_NEXT, "unlink"))(path);
      }
      """;

  /** No blocks are reserved, and whoever has them reserved by writes ends. */
  private static final String NO_FALLOCATE =
      """
      #include <errno.h>
      #include <stdlib.h>
      #include <sys/types.h>
      extern "C" int fallocate(int, int, off_t, off_t) { errno = EOPNOTSUPP; return -1; }
      extern "C" int fallocate64(int, int, off_t, off_t) { errno = EOPNOTSUPP; return -1; }
      extern "C" int posix_fallocate(int, off_t, off_t) { abort(); }
      extern "C" int posix_fallocate64(int, off_t, off_t) { abort(); }
      """;

  @TempDir Path folder;

  private void run(List<String> command, Map<String, String> environment) throws Exception {
    Path said = folder.resolve("said");
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(said.toFile());
    builder.environment().putAll(environment);
    Process process = builder.start();
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).as(Files.readString(said)).isZero();
    Files.delete(said);
  }

  /** A reshard of a file to a folder on it, once and over its own result. */
  private void reshard(String standIn) throws Exception {
    Path source = Files.write(folder.resolve("source.cpp"), standIn.getBytes(StandardCharsets.UTF_8));
    Path library = folder.resolve("library.so");
    run(List.of("c++", "-shared", "-fPIC", "-o", "" + library, "" + source, "-ldl"), Map.of());
    Path in = folder.resolve("in.safetensors");
    long[] bits = {1, 2, 3, 4};
    TestFile.write(in, List.of(new TestFile.Tensor("w", DType.F32, new int[] {4}, bits)), Map.of());
    Path place = Files.createDirectory(folder.resolve("place"));
    Path out = place.resolve("out");
    for (int i = 0; i < 2; i++) {
      List<String> command =
          ChildCommand.of("reshard", "--from", "1:R", "--to", "1@0:R", "--force", in, out).command();
      run(command, Map.of("LD_PRELOAD", "" + library));
      assertThat(names(place)).containsExactly("out");
    }
    assertThat(TestFile.read(out.resolve("rank-00000.safetensors")).tensors().get(0).bits()).isEqualTo(bits);
  }

  private static List<String> names(Path place) throws IOException {
    try (Stream<Path> all = Files.list(place)) {
      return all.map(each -> each.getFileName().toString()).toList();
    }
  }

  @Test
  void aFileThatIsOpenLeavesAnotherOnNfs() throws Exception {
    reshard(NFS);
  }

  @Test
  void blocksThatCannotBeReservedAreNotWrittenOneByOne() throws Exception {
    reshard(NO_FALLOCATE);
  }
}
