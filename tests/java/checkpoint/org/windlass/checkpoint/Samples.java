// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.lang.reflect.Parameter;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.kernel.Target;
import org.windlass.layout.Layout;
import org.windlass.plan.TransferMode;
import org.windlass.reshard.ProgressListener;
import org.windlass.reshard.Reshard;
import org.windlass.testing.SampleValues;

/** The values of this module. */
final class Samples extends SampleValues {
  Samples(Path folder) {
    super(folder);
    List<SafetensorsHeader.Item> items =
        List.of(new SafetensorsHeader.Item("w", DType.I64, List.of(2L, 2L)));
    Supplier<SafetensorsWriter> file =
        each(() -> SafetensorsWriter.create(newPath(), items, Map.of()));
    Path written = written(file);
    put(DType.class, () -> DType.I64);
    put(Layout.class, () -> Layout.parse("1x1:R,R"));
    put(IOException.class, () -> new IOException("sample"));
    put(Checkpoint.class, once(() -> Checkpoint.open(written)));
    put(CheckpointWriter.class, each(() -> CheckpointWriter.begin(newPath(), false)));
    put(SafetensorsFile.class, once(() -> SafetensorsFile.open(written)));
    put(SafetensorsWriter.class, file);
    put(SafetensorsHeader.class, () -> file.get().header());
    put(SafetensorsIndex.class, () -> new SafetensorsIndex(Map.of("w", "w.safetensors")));
    put(SafetensorsEntry.class, () -> file.get().header().tensors().iterator().next());
    LayoutFile.Entry entry =
        new LayoutFile.Entry(List.of(2L, 2L), Optional.of(DType.I64), Optional.empty());
    put(Target.class, () -> Target.SIM);
    put(LocalGroup.class, each(() -> LocalGroup.of(1)));
    put(TransferMode.class, () -> TransferMode.DIRECT);
    put(Reshard.class, Reshard::fromStoredLayouts);
    put(ProgressListener.class, () -> (moved, total) -> {});
    Consumer<String> warnings = text -> {};
    generic("java.util.function.Consumer<java.lang.String>", () -> warnings);
    generic("List<org.windlass.reshard.ReshardResult$Cast>", List::of);
    generic("List<org.windlass.checkpoint.SafetensorsHeader$Item>", () -> items);
    Layout layout = Layout.parse("1x1:R,R");
    generic("List<org.windlass.layout.Layout>", () -> List.of(layout, layout));
    generic("Optional<List<java.lang.Long>>", Optional::empty);
    generic("Optional<java.lang.String>", Optional::empty);
    generic("Optional<org.windlass.DType>", Optional::empty);
    generic("Optional<org.windlass.layout.Layout>", Optional::empty);
    generic("Optional<org.windlass.checkpoint.LayoutFile$Parts>", Optional::empty);
    generic(
        "Map<java.lang.String, org.windlass.checkpoint.LayoutFile$Entry>",
        () -> Map.of("w", entry));
  }

  private static Path written(Supplier<SafetensorsWriter> file) {
    try (SafetensorsWriter writer = file.get()) {
      return writer.path();
    }
  }

  @Override
  public Object of(Parameter parameter) {
    Object value = super.of(parameter);
    boolean ofFile =
        parameter.getDeclaringExecutable().getDeclaringClass() == CheckpointWriter.class;
    return value instanceof String && ofFile ? "w.safetensors" : value;
  }
}
