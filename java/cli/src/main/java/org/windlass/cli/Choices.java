// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;
import org.windlass.Algorithm;
import org.windlass.DType;
import org.windlass.examples.ExampleOfProcesses;
import org.windlass.examples.Examples;
import org.windlass.examples.Examples.Example;
import org.windlass.kernel.Target;
import org.windlass.plan.TransferMode;

/** The values that an option or argument takes, used in its help and for completion in a shell. */
abstract class Choices implements Iterable<String> {
  private final List<String> names;

  private Choices(Stream<?> values) {
    names = values.map(Object::toString).toList();
  }

  @Override
  public Iterator<String> iterator() {
    return names.iterator();
  }

  static final class Targets extends Choices {
    Targets() {
      super(Stream.of(Target.values()));
    }
  }

  static final class Dtypes extends Choices {
    Dtypes() {
      super(Stream.of(DType.values()));
    }
  }

  /** The dtypes to which values are cast. */
  static final class Floats extends Choices {
    Floats() {
      super(Stream.of(DType.values()).filter(DType.F32::canCast));
    }
  }

  static final class Modes extends Choices {
    Modes() {
      super(Stream.of(TransferMode.values()));
    }
  }

  /** The modes of a reshard. */
  static final class FileModes extends Choices {
    FileModes() {
      super(Stream.of(TransferMode.DIRECT, TransferMode.STAGED));
    }
  }

  static final class Launches extends Choices {
    Launches() {
      super(Stream.of(LaunchOptions.THREADS, LaunchOptions.PROCESSES));
    }
  }

  static final class Operations extends Choices {
    Operations() {
      super(Stream.of(BenchOperations.ALL.split(", ")));
    }
  }

  static final class Algorithms extends Choices {
    Algorithms() {
      super(Stream.of(Algorithm.values()));
    }
  }

  static final class Buffers extends Choices {
    Buffers() {
      super(Stream.of(BenchOperations.BUFFERS.split(", ")));
    }
  }

  static final class Shells extends Choices {
    Shells() {
      super(Stream.of(CompletionCommand.SHELLS.split(", ")));
    }
  }

  static final class ExampleNames extends Choices {
    ExampleNames() {
      super(
          Stream.concat(
              Examples.all().stream().map(Example::name),
              ExampleOfProcesses.all().stream().map(ExampleOfProcesses::name)));
    }
  }

  static final class Commands extends Choices {
    Commands() {
      super(Main.commandNames());
    }
  }
}
