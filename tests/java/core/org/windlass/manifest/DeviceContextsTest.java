// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.testing.CudaStandIn;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;
import org.windlass.testing.TestClasses;

/** Slots of a manifest in the memory of GPUs, of ranks as threads and in several processes. */
@Tag("devices")
@Timeout(180)
class DeviceContextsTest {
  @TempDir Path folder;

  @ParameterizedTest(name = "{0} GPUs")
  @ValueSource(ints = {1, 3})
  void testsPassOnGpus(int devices) throws Exception {
    assertThat(
            CudaStandIn.run(folder, devices, false, TestClasses.class, Contexts.class.getName()))
        .containsPattern("(?m)^[1-9]\\d* tests passed on cuda$");
  }

  /** Not found by name as tests: for processes whose target is cuda. */
  static final class Contexts {
    private static final String GROUPS =
        """
        {"version": 2, "comm_groups": [
          {"name": "experts", "devices": [2, 0], "slots": [
            {"name": "out", "dtype": "float32", "size": 300, "store_to_host": true},
            {"name": "none", "dtype": "int64", "size": 0},
            {"name": "in", "dtype": "float32", "size": 300, "load_from_host": true}]},
          {"name": "all", "devices": [], "slots": [
            {"name": "out", "dtype": "int32", "size": 40, "store_to_host": true}]}]}
        """;

    @OnRanks({1, 3})
    void hostTensorsGoInAndComeOutBitForBit(Ranks ranks) {
      ranks.run(comm -> CommContextsTest.goInAndOut(comm, CommManifest::openOnDevices, 3));
    }

    @OnRanks(3)
    void hostTensorsOfSlotsOnTheHostDoToo(Ranks ranks) {
      ranks.run(comm -> CommContextsTest.goInAndOut(comm, CommManifest::open, 4));
    }

    /** Each group's collectives and one-sided moves take them as any tensor of a device. */
    @OnRanks(3)
    void slotsAreTensorsOfDeviceWindows(Ranks ranks) {
      ranks.run(
          comm -> {
            Tensor in = Tensor.allocate(DType.F32, 300).fill(comm.rank() + 1);
            Tensor sum = Tensor.allocate(DType.F32, 300);
            Tensor codes = Tensor.allocate(DType.I32, 40);
            HostTensors hosts =
                HostTensors.of("in", in).and("experts", "out", sum).and("all", "out", codes);
            try (CommContexts contexts =
                CommContextsTest.parse(GROUPS).openOnDevices(comm, hosts)) {
              contexts
                  .find("experts")
                  .ifPresent(
                      experts -> {
                        DistributedTensor out = experts.tensor("out");
                        assertThat(experts.window().isOnDevice()).isTrue();
                        assertThat(out.isOnDevice()).isTrue();
                        experts.communicator().allReduce(experts.tensor("in"), out, ReduceOp.SUM);
                      });
              CommContext all = contexts.get("all");
              Tensor own = Tensor.allocate(DType.I32, 40).fill(comm.rank());
              all.window().put(own, (comm.rank() + 1) % 3, all.tensor("out"));
              contexts.storeToHost();
            }
            boolean isExpert = comm.rank() != 1;
            for (int i = 0; i < 300; i++) {
              assertThat(sum.getDouble(i)).isEqualTo(isExpert ? 4 : 0);
            }
            for (int i = 0; i < 40; i++) {
              assertThat(codes.getLong(i)).isEqualTo((comm.rank() + 2) % 3);
            }
          });
    }
  }
}
