// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Operation;
import org.windlass.Tensor;

/** Each rank is a stage of a pipeline. Batches go from stage to stage. */
public final class Pipeline {
  private static final int BATCHES = 3;
  private static final int SIZE = 5000;

  public static void main(String[] args) {
    try (var group = LocalGroup.of(3)) {
      group.run(Pipeline::stage);
    }
  }

  private static void stage(Communicator comm) {
    int last = comm.size() - 1;
    var sends = new ArrayList<Operation<?>>();
    var batches = new Tensor[BATCHES]; // a tensor stays unchanged until its send has ended
    for (int batch = 0; batch < BATCHES; batch++) {
      var values = batches[batch] = Tensor.allocate(DType.F32, SIZE).fill(batch);
      if (comm.rank() > 0) {
        comm.receive(values, comm.rank() - 1, batch); // the tag is the batch
      }
      values.fill(values.getDouble(0) + 10); // the work of this stage
      if (comm.rank() < last) {
        sends.add(comm.sendAsync(values, comm.rank() + 1, batch));
      } else {
        System.out.println("batch " + batch + " ends as " + values.getDouble(SIZE - 1));
      }
    }
    sends.forEach(Operation::await);
    for (var values : batches) {
      values.close();
    }
  }
}
