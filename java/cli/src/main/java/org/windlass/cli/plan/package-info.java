// SPDX-License-Identifier: Apache-2.0
/** Formats plans as text, JSON or a page. */
@NullMarked
package org.windlass.cli.plan;

import org.jspecify.annotations.NullMarked;
