// SPDX-License-Identifier: Apache-2.0
/** Reads how a launcher describes the processes of a job and where they find each other. */
package org.windlass.launch;
