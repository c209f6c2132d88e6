// SPDX-License-Identifier: Apache-2.0
/** Represents a request, and the list of its moves. */
@NullMarked
package org.windlass.reshard.request;

import org.jspecify.annotations.NullMarked;
