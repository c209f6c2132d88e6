// SPDX-License-Identifier: Apache-2.0
/**
 * What running ranks do: reports of one communicator or of a whole job, and profiles of kernels.
 */
package org.windlass.report;
