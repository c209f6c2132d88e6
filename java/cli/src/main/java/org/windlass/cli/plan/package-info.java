// SPDX-License-Identifier: Apache-2.0
/** Formats plans as text, JSON or a page. */
package org.windlass.cli.plan;
