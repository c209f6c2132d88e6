// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import static org.windlass.examples.PipelineLayer.BATCHES;
import static org.windlass.examples.PipelineLayer.WIDTH;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Operation;
import org.windlass.Tensor;

/**
 * Shows pipeline parallelism: each rank has one layer of a model, and micro-batches go through the
 * ranks by send and receive. The schedule is "one forward, one backward": a rank begins with as
 * many forward passes as ranks follow it, and then alternates. So a rank keeps the inputs of at
 * most as many micro-batches as there are ranks.
 *
 * <p>A layer is y = W x, and the loss |y|^2 / 2, so that the gradient that the last rank begins
 * with is y. Each rank compares its gradient of W with that of one rank which has all layers.
 */
public final class PipelineParallelExample {
  private PipelineParallelExample() {}

  public static void main(String[] args) {
    Examples.main(PipelineParallelExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(comm -> new Stage(comm).run());
    out.printf(
        "pipeline-parallel: %d ranks, %d micro-batches, gradients of %d weights each equal the"
            + " golden ones%n",
        ranks, BATCHES, WIDTH * WIDTH);
  }

  /** One rank: its layer, and what it keeps of micro-batches between forward and backward. */
  private static final class Stage {
    private final Communicator comm;
    private final int rank;
    private final int last;
    private final float[][] weights;
    private final float[][] gradient = new float[WIDTH][WIDTH];
    private final float[][] inputs = new float[BATCHES][];
    private final float[][] outputs = new float[BATCHES][];
    private final List<Operation<Void>> sends = new ArrayList<>();

    Stage(Communicator comm) {
      this.comm = comm;
      rank = comm.rank();
      last = comm.size() - 1;
      weights = PipelineLayer.weights(rank);
    }

    void run() {
      int ahead = Math.min(last - rank, BATCHES);
      try (var window = comm.window(4L * BATCHES * WIDTH * Float.BYTES)) {
        List<Tensor> messages = new ArrayList<>();
        for (int i = 0; i < 4 * BATCHES; i++) {
          messages.add(window.tensor(DType.F32, WIDTH));
        }
        for (int batch = 0; batch < BATCHES + ahead; batch++) {
          if (batch < BATCHES) {
            forward(batch, messages);
          }
          if (batch >= ahead) {
            backward(batch - ahead, messages);
          }
        }
        sends.forEach(Operation::await);
      }
      float[][] golden = PipelineLayer.golden(rank, comm.size());
      try (var mine = Tensor.allocate(DType.F32, WIDTH, WIDTH)) {
        for (int row = 0; row < WIDTH; row++) {
          mine.select(0, row).copyFrom(gradient[row]);
        }
        Golden.check(mine, i -> golden[i / WIDTH][i % WIDTH]);
      }
    }

    /** Each message has a tensor of its own, which stays as it is until the send has ended. */
    private void forward(int batch, List<Tensor> messages) {
      inputs[batch] =
          rank == 0
              ? PipelineLayer.input(batch)
              : receive(messages.get(4 * batch), rank - 1, batch);
      outputs[batch] = PipelineLayer.times(weights, inputs[batch]);
      if (rank < last) {
        send(outputs[batch], messages.get(4 * batch + 1), rank + 1, batch);
      }
    }

    private void backward(int batch, List<Tensor> messages) {
      float[] loss =
          rank == last ? outputs[batch] : receive(messages.get(4 * batch + 2), rank + 1, batch);
      PipelineLayer.addProducts(gradient, loss, inputs[batch]);
      if (rank > 0) {
        send(PipelineLayer.backwards(weights, loss), messages.get(4 * batch + 3), rank - 1, batch);
      }
      inputs[batch] = null;
      outputs[batch] = null;
    }

    private void send(float[] values, Tensor message, int peer, int batch) {
      message.copyFrom(values);
      sends.add(comm.sendAsync(message, peer, batch));
    }

    private float[] receive(Tensor message, int peer, int batch) {
      comm.receive(message, peer, batch);
      float[] values = new float[WIDTH];
      message.copyTo(values);
      return values;
    }
  }
}
