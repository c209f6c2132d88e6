// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static java.time.Duration.ofSeconds;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.windlass.experts.ExpertOptions;
import org.windlass.experts.ExpertParallel;
import org.windlass.experts.ExpertRouting;
import org.windlass.internal.store.Token;
import org.windlass.job.Follower;
import org.windlass.job.Followers;
import org.windlass.job.Job;
import org.windlass.job.Role;
import org.windlass.job.SampleJobs;
import org.windlass.kernel.Kernel;
import org.windlass.kernel.KernelLibrary;
import org.windlass.kernel.Target;
import org.windlass.launch.Rendezvous;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.Region;
import org.windlass.layout.TensorSpec;
import org.windlass.link.Link;
import org.windlass.link.LinkTransfer;
import org.windlass.link.LinkTransferBuilder;
import org.windlass.manifest.Bootstrap;
import org.windlass.manifest.CommContext;
import org.windlass.manifest.CommContexts;
import org.windlass.manifest.CommGroup;
import org.windlass.manifest.CommManifest;
import org.windlass.manifest.ElementType;
import org.windlass.manifest.HostTensors;
import org.windlass.manifest.Slot;
import org.windlass.plan.HostTraffic;
import org.windlass.plan.Hosts;
import org.windlass.plan.LinkSpeeds;
import org.windlass.plan.Plan;
import org.windlass.plan.PlanOptions;
import org.windlass.plan.Route;
import org.windlass.plan.TransferMode;
import org.windlass.report.KernelProfile;
import org.windlass.report.Report;
import org.windlass.report.RunningJob;
import org.windlass.testing.Processes;
import org.windlass.testing.SampleValues;
import org.windlass.testing.TestKernels;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/** The values of this module. */
final class Samples extends SampleValues {
  Samples(Path folder) {
    super(folder);
    plans();
    manifests();
    running(folder);
  }

  private void plans() {
    put(DType.class, () -> DType.I64);
    put(ReduceOp.class, () -> ReduceOp.SUM);
    put(Algorithm.class, () -> Algorithm.AUTO);
    put(TransferMode.class, () -> TransferMode.DIRECT);
    put(DeviceMesh.class, () -> DeviceMesh.parse("a=1xb=1"));
    put(Layout.class, () -> Layout.parse("1x1:R,R"));
    put(Placement[].class, () -> new Placement[] {Placement.replicate(), Placement.replicate()});
    put(TensorSpec.class, () -> TensorSpec.of("w", DType.I64, Layout.parse("1x1:R,R"), 2, 2));
    put(Hosts.class, () -> Hosts.ofEach(2));
    put(
        LinkSpeeds.class,
        () -> LinkSpeeds.parse("{\"within\":{\"GBps\":1},\"between\":{\"GBps\":1}}"));
    put(HostTraffic.class, () -> plan().totals().hosts());
    put(PlanOptions.class, PlanOptions::defaults);
    put(Plan.class, Samples::plan);
    put(Region.class, () -> new Region(new long[] {0, 2}, new long[] {0, 2}));
    put(Route.class, () -> plan().routes().get(0));
    generic(
        "List<org.windlass.layout.Placement>",
        () -> List.of(Placement.replicate(), Placement.shard(0)));
    generic(
        "Map<org.windlass.report.KernelProfile$Engine, org.windlass.report.KernelProfile$Work>",
        () -> Map.of(KernelProfile.Engine.S, new KernelProfile.Work(1, 1, 1)));
    generic("List<org.windlass.plan.Plan>", () -> List.of(plan()));
    generic("List<org.windlass.plan.Traffic$Link>", () -> plan().traffic().links());
    generic("List<org.windlass.plan.HostTraffic$Link>", List::of);
    generic("List<org.windlass.plan.HostTraffic$Within>", List::of);
    generic("List<org.windlass.report.Report$Call>", List::of);
    generic("List<org.windlass.report.Report$Rank>", List::of);
    generic("List<org.windlass.report.JobReport$Group>", List::of);
    generic("Optional<org.windlass.report.Report$Process>", Optional::empty);
    put(Report.class, () -> new Report(List.of(), Optional.empty(), ""));
    put(Report.ProcessState.class, () -> Report.ProcessState.RUNS);
    put(Report.Process.class, () -> new Report.Process(1, Report.ProcessState.RUNS));
    generic("Optional<org.windlass.Algorithm>", Optional::empty);
    generic("Optional<org.windlass.error.ErrorCode>", Optional::empty);
    generic("Optional<org.windlass.error.WindlassException>", Optional::empty);
    generic("Optional<java.lang.String>", Optional::empty);
    generic("java.lang.Iterable<org.windlass.plan.Route>", () -> plan().routes());
    generic("java.util.function.Consumer<org.windlass.plan.Route>", () -> ignored());
  }

  private void manifests() {
    Slot slot = new Slot("a", new Slot.Elements(ElementType.INT8, 4), false, false);
    CommGroup group = new CommGroup(List.of(0), List.of(slot));
    CommManifest manifest = new CommManifest(List.of(group));
    Bootstrap bootstrap = manifest.bootstrap(1);
    put(Slot.class, () -> slot);
    put(Slot.Extent.class, slot::extent);
    put(ElementType.class, () -> ElementType.INT8);
    put(CommGroup.class, () -> group);
    put(CommManifest.class, () -> manifest);
    put(Bootstrap.class, () -> bootstrap);
    put(Bootstrap.Group.class, () -> bootstrap.groups().get(0));
    put(Bootstrap.Place.class, () -> bootstrap.groups().get(0).slots().get(0));
    generic("List<org.windlass.manifest.Slot>", () -> List.of(slot));
    generic("List<org.windlass.manifest.CommGroup>", () -> List.of(group));
    generic("List<org.windlass.manifest.Bootstrap$Group>", bootstrap::groups);
    generic(
        "List<org.windlass.manifest.Bootstrap$Place>", () -> bootstrap.groups().get(0).slots());
  }

  private static Plan plan() {
    Layout layout = Layout.parse("1x1:R,R");
    return Plan.of(layout, layout, new long[] {2, 2}, DType.I64);
  }

  private static <T> Consumer<T> ignored() {
    return value -> {};
  }

  private void running(Path folder) {
    CommunicatorOptions options = CommunicatorOptions.defaults().withDeadline(ofSeconds(10));
    Supplier<LocalGroup> group = once(() -> LocalGroup.of(1, options));
    Supplier<Communicator> one = () -> group.get().communicator(0);
    Supplier<Window> window = once(() -> one.get().window(1 << 16));
    Supplier<MemoryPool> pool = once(() -> one.get().memoryPool(1 << 16));
    Supplier<DistributedTensor> distributed = () -> window.get().tensorAt(0, DType.I64, 2, 2);
    Supplier<Tensor> tensor = () -> Tensor.allocate(DType.I64, 2, 2);
    TensorSpec spec = (TensorSpec) of(TensorSpec.class);
    Supplier<Link> link =
        once(() -> Link.open(one.get(), "pair", DeviceMesh.of(1), DeviceMesh.of(1)));
    CommManifest manifest = (CommManifest) of(CommManifest.class);
    Supplier<CommContexts> contexts = once(() -> manifest.open(one.get()));
    put(HostTensors.class, HostTensors::none);
    put(CommContexts.class, contexts);
    put(CommContext.class, () -> contexts.get().get(0));
    ExpertOptions experts = ExpertOptions.of(2, 1, 2, 2, DType.F32);
    Supplier<ExpertParallel> parallel = once(() -> ExpertParallel.open(one.get(), experts));
    put(ExpertOptions.class, () -> experts);
    put(ExpertParallel.class, parallel);
    put(ExpertRouting.class, once(() -> parallel.get().routing()));
    put(CommunicatorOptions.class, () -> options);
    put(Rendezvous.class, Samples::alone);
    put(LocalGroup.class, group);
    put(Communicator.class, one);
    put(Collectives.class, one);
    put(PointToPoint.class, one);
    put(Reductions.class, one);
    put(ArrayCollectives.class, one);
    put(MessageGroup.class, MessageGroup::new);
    put(StreamCollectives.class, () -> one.get().onStream(0));
    put(Window.class, window);
    put(MemoryPool.class, pool);
    put(Target.class, () -> Target.SIM);
    put(Kernel.class, () -> TestKernels.kernel("shift"));
    put(KernelLibrary.class, () -> KernelLibrary.load(TestKernels.FILE, Target.SIM));
    put(Signals.class, () -> window.get().signals(2));
    put(Tensor.class, tensor);
    put(DistributedTensor.class, distributed);
    put(TransferBuilder.class, () -> TransferBuilder.of(one.get()));
    put(
        Transfer.class,
        once(() ->
            TransferBuilder.of(one.get()).add(spec, tensor.get(), spec, tensor.get()).register()));
    put(Link.class, link);
    put(LinkTransferBuilder.class, () -> link.get().transferBuilder());
    put(
        LinkTransfer.class,
        once(() -> link.get().transferBuilder().add(spec, tensor.get()).into(spec, tensor.get())
            .register()));
    Supplier<Job> job = once(() -> SampleJobs.alone(one.get(), folder));
    put(Role.class, () -> Role.SOURCE);
    put(Job.class, job);
    put(Followers.class, () -> job.get().followers("pair", ignored()));
    put(Follower.class, () -> new Follower("job", OptionalLong.of(1), 0, Optional.empty()));
    put(OptionalLong.class, OptionalLong::empty);
    generic("java.util.function.Consumer<org.windlass.link.LinkTransferBuilder>", () -> ignored());
    put(RunningJob.class, once(Samples::running));
    put(Operation.class, () -> done(one.get()));
    Consumer<Object> nothing = ignored();
    Function<Object, Object> same = value -> value;
    RankBody<RuntimeException> body = rank -> {};
    RankFunction<Integer, RuntimeException> rank = Communicator::rank;
    generic("java.util.function.Consumer<? super org.windlass.Collectives>", () -> nothing);
    generic(
        "java.util.function.Function<? super org.windlass.Collectives, ? extends T>", () -> same);
    generic("java.util.function.Consumer<? super org.windlass.MessageGroup>", () -> nothing);
    generic("org.windlass.RankBody<E>", () -> body);
    generic("org.windlass.RankFunction<T, E>", () -> rank);
  }

  /** That of one rank. */
  static Rendezvous alone() {
    return new Rendezvous() {
      @Override
      public int rank() {
        return 0;
      }

      @Override
      public int size() {
        return 1;
      }

      @Override
      public List<byte[]> allGather(byte[] own, Duration deadline) {
        return List.of(own);
      }
    };
  }

  /** Of two ranks in this process, which end meanwhile. */
  private static RunningJob running() {
    Map<String, String> token = Map.of("WINDLASS_TOKEN", Token.random().digits());
    PairOfRanks pair = new PairOfRanks(Processes.loopback(), token);
    try {
      return RunningJob.at("" + ProcessHandle.current().pid(), Map.of(), ofSeconds(10));
    } finally {
      pair.close();
    }
  }

  private static Operation<Void> done(Communicator communicator) {
    Operation<Void> operation = communicator.runAsync(Collectives::barrier);
    operation.await();
    return operation;
  }
}
