// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

/** The failure of a rank in another process, which has said why. */
final class RankFailed extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient Complaint complaint;

  RankFailed(Complaint complaint, Throwable here) {
    super(complaint.message(), here);
    this.complaint = complaint;
  }

  Complaint complaint() {
    return complaint;
  }
}
