// SPDX-License-Identifier: Apache-2.0
/**
 * Checkpoints from one layout to another: {@link org.windlass.reshard.Reshard#from} says from which,
 * {@link org.windlass.reshard.Reshard#run} does it, {@link org.windlass.reshard.ReshardResult} tells
 * what was done.
 */
package org.windlass.reshard;
