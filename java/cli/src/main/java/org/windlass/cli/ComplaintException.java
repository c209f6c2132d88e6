// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

/** Thrown for a failure whose {@link Complaint} is already known. */
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
