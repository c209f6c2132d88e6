// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Values keep what they were made of, whatever becomes of the collections. */
class CopiesTest {
  @Test
  void collectionsAreCopied() {
    List<Long> shape = new ArrayList<>(List.of(2L));
    Map<String, String> files = new HashMap<>(Map.of("w", "w.safetensors"));
    SafetensorsIndex index = new SafetensorsIndex(files);
    LayoutFile.Entry entry = new LayoutFile.Entry(shape, Optional.empty(), Optional.empty());
    Map<String, LayoutFile.Entry> entries = new HashMap<>(Map.of("w", entry));
    LayoutFile layouts = new LayoutFile(entries);
    shape.clear();
    files.clear();
    entries.clear();
    assertThat(index.files()).containsOnlyKeys("w");
    assertThat(layouts.tensors()).containsOnlyKeys("w");
    assertThat(entry.shape()).containsExactly(2L);
    for (Map<?, ?> map : List.of(index.files(), layouts.tensors())) {
      assertThatThrownBy(map::clear).isInstanceOf(UnsupportedOperationException.class);
    }
  }
}
