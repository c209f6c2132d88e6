// SPDX-License-Identifier: Apache-2.0
/** Runs the demo of the {@code windlass} command. */
package org.windlass.cli.demo;
