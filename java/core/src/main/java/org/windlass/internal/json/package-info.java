// SPDX-License-Identifier: Apache-2.0
/** Reads and writes JSON. */
package org.windlass.internal.json;
