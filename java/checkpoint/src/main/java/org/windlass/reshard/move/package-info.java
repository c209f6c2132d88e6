// SPDX-License-Identifier: Apache-2.0
/** What moves bytes from files to files. */
package org.windlass.reshard.move;
