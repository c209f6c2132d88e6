// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

/** A failure of which it is known already how the command prints it. */
final class ComplaintException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient Complaint complaint;

  ComplaintException(Complaint complaint, Throwable here) {
    super(complaint.message(), here);
    this.complaint = complaint;
  }

  Complaint complaint() {
    return complaint;
  }
}
