// SPDX-License-Identifier: Apache-2.0
/**
 * Checks a request, warns about parts of it that are seldom intended, and suggests rules that would
 * work.
 */
@NullMarked
package org.windlass.reshard.check;

import org.jspecify.annotations.NullMarked;
