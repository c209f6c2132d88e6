// SPDX-License-Identifier: Apache-2.0
/** Checks of a request: what is refused, what is doubtful, and which rule would do instead. */
package org.windlass.reshard.check;
