// SPDX-License-Identifier: Apache-2.0
/** Memory that calls use: its lifetime, and what is said of memory that nobody closed. */
package org.windlass.internal.memory;
