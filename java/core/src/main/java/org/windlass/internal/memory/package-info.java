// SPDX-License-Identifier: Apache-2.0
/** Manages memory that calls use: its lifetime, and reports of unclosed memory. */
@NullMarked
package org.windlass.internal.memory;

import org.jspecify.annotations.NullMarked;
