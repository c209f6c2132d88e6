// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

/** A key of a store, and the value that it has while the ranks of a job may still join. */
public record Presence(String key, byte[] value) {}
