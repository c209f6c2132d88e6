// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.util.Arrays;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestExecutionResult.Status;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.windlass.kernel.Target;

/** Classes of tests that run in a process of their own, which has another target. */
public final class TestClasses implements TestExecutionListener {
  private int passed;
  private int failed;

  private TestClasses() {}

  /** Runs those that are named, and ends with status 1 where a test fails. */
  public static void main(String[] names) {
    TestClasses listener = new TestClasses();
    LauncherFactory.create()
        .execute(
            LauncherDiscoveryRequestBuilder.request()
                .selectors(Arrays.stream(names).map(name -> selectClass(name)).toList())
                .build(),
            listener);
    System.out.println(listener.passed + " tests passed on " + Target.loaded());
    System.exit(listener.failed == 0 ? 0 : 1);
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    if (result.getStatus() == Status.FAILED) {
      failed++;
      System.out.println(test.getDisplayName() + " failed:");
      result.getThrowable().ifPresent(failure -> failure.printStackTrace(System.out));
    } else if (test.isTest() && result.getStatus() == Status.SUCCESSFUL) {
      passed++;
    }
  }
}
