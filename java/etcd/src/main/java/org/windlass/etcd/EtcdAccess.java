// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.ClientBuilder;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import javax.net.ssl.SSLException;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;

/**
 * The access of this process to an etcd, as the environment says: how it shows who it is, and how it
 * knows that etcd.
 *
 * @param user empty for none
 * @param password of that user
 * @param authorities a file of certificates in PEM, of those who vouch for that etcd: the
 *     connection is encrypted; empty for one that is not
 */
record EtcdAccess(String user, String password, String authorities) {
  static final String USER = "WINDLASS_ETCD_USER";
  static final String PASSWORD = "WINDLASS_ETCD_PASSWORD";
  static final String AUTHORITIES = "WINDLASS_ETCD_CA";

  /** A server takes pings no closer than 5 s, unless told so. */
  private static final Duration PING = Duration.ofSeconds(6);

  private static final Duration PONG = Duration.ofSeconds(3);

  /** Of one answer: a page of keys, or a value and what it was. */
  private static final int ANSWER = 8 << 20;

  static EtcdAccess of(Map<String, String> variables, FailureMaker failures) {
    EtcdAccess access =
        new EtcdAccess(
            variables.getOrDefault(USER, ""),
            variables.getOrDefault(PASSWORD, ""),
            variables.getOrDefault(AUTHORITIES, ""));
    if (access.user.isEmpty() != access.password.isEmpty()) {
      throw failures.make(
          Native.WL_INVALID_ARGUMENT,
          "one of " + USER + " and " + PASSWORD + " is set, and etcd wants both; set both, or"
              + " neither");
    }
    return access;
  }

  /** A client of the etcd there, which connects by and by. */
  Client client(EtcdAddress address, FailureMaker failures) {
    ClientBuilder builder =
        Client.builder()
            .endpoints(address.uris())
            .waitForReady(true)
            .keepaliveTime(PING)
            .keepaliveTimeout(PONG)
            .keepaliveWithoutCalls(false)
            .maxInboundMessageSize(ANSWER);
    if (!user.isEmpty()) {
      builder.user(utf8(user)).password(utf8(password));
    }
    if (!authorities.isEmpty()) {
      try {
        builder.sslContext(context -> context.trustManager(new File(authorities)));
      } catch (SSLException | IllegalArgumentException e) {
        throw failures.make(
            Native.WL_RESOURCE,
            AUTHORITIES + " is '" + authorities + "', from which no certificates can be read: "
                + (e.getCause() == null ? e : e.getCause()).getMessage(),
            e,
            "",
            List.of());
      }
    }
    return builder.build();
  }

  private static ByteSequence utf8(String text) {
    return ByteSequence.from(text, StandardCharsets.UTF_8);
  }

  /** Without the password. */
  @Override
  public String toString() {
    return user.isEmpty() ? "nobody" : user;
  }
}
