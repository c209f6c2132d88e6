// SPDX-License-Identifier: Apache-2.0
package org.windlass;

/**
 * Result of a receive: {@link PointToPoint#receive}.
 *
 * @param source the rank that sent the message
 * @param tag the message's tag
 * @param count number of elements in the message. They are the first of the receive's tensor; the
 *     others are unchanged
 */
public record Received(int source, int tag, long count) {}
