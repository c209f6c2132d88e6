// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import java.lang.reflect.Constructor;
import java.time.Duration;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;

/**
 * What is around fragments of Java in the pages: its fields are the names that they use and don't
 * declare. {@code ```java Puts} takes {@link Puts}; blocks one after the other that name the same
 * scene are its fragments, in order. Where nothing is named, {@link Ranks} is it.
 *
 * <p>A class made of the fragments extends the scene, and its {@code main} plays it. What a
 * fragment has done is checked by the scene, and what would run for ever is ended by it.
 */
public abstract class Scene {
  /** After so long what hangs has failed. */
  protected static final Duration SOON = Duration.ofSeconds(30);

  /** The first block, or the only one. */
  protected abstract void fragment() throws Exception;

  /** The second block of those that name the scene. */
  protected void second() throws Exception {
    throw new AssertionError("this scene takes a second block of Java that names it");
  }

  /** Plays the scene. */
  public abstract void play() throws Exception;

  /** A rank's part of a scene. */
  @FunctionalInterface
  protected interface Part<S> {
    void play(S own, Communicator comm) throws Exception;
  }

  /** Each of {@code ranks} ranks, as a thread, plays with a scene of its own. */
  protected final <S extends Scene> void onRanks(int ranks, Class<S> type, Part<S> part)
      throws Exception {
    CommunicatorOptions options = CommunicatorOptions.defaults().withDeadline(SOON);
    try (var group = LocalGroup.of(ranks, options)) {
      group.run(
          comm -> {
            Constructor<? extends Scene> maker = getClass().getDeclaredConstructor();
            maker.setAccessible(true);
            part.play(type.cast(maker.newInstance()), comm);
          });
    }
  }
}
