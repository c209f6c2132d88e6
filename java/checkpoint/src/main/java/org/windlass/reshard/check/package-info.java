// SPDX-License-Identifier: Apache-2.0
/** Checks a request, warns about doubtful parts of it, and suggests rules that would work. */
@NullMarked
package org.windlass.reshard.check;

import org.jspecify.annotations.NullMarked;
